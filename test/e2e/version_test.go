package e2e

import (
	"path/filepath"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// Every replica finds the version of the API server with the shipped permissions and
// configuration, and explain goes by the same.
func TestVersionIsFound(t *testing.T) {
	gitVersion, err := cluster.KubernetesVersion()
	if err != nil {
		t.Fatal(err)
	}
	server, err := config.ParseServerVersion(gitVersion)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"version": server.String(), "source": "server"}
	for _, replica := range cluster.Installed.Replicas() {
		metrics, err := replica.Metrics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const name = "gpu_binpacker_scheduler_version_info"
		if metrics.Sum(name, want) != 1 || metrics.Sum(name, nil) != 1 {
			t.Errorf("%s goes by %v, want only %v", replica.Name(), metrics.Labels(name), want)
		}
	}
	root, err := programs.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	var explained struct {
		Scheduler struct{ KubernetesVersion, Source string }
	}
	command(t, &explained, "explain", "-f", filepath.Join(root, "config", "samples", "job.yaml"))
	if got := explained.Scheduler; got.KubernetesVersion != server.String() || got.Source != "server" {
		t.Errorf("explain goes by %+v, want %v", got, want)
	}
}
