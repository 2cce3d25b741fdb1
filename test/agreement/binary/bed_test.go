package binary

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/agreement/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// bed is a control plane and what its scheduler says.
type bed struct {
	*controlplane.ControlPlane
	log *schedulerLog
	// version is that of the API server and the scheduler.
	version *version.Version
	// cfg is the shipped configuration for that version.
	cfg config.Configuration
}

func newBed(t *testing.T) *bed {
	t.Helper()
	cp := controlplane.StartForTest(t, controlplane.Options{
		Verbosity: map[string]int{controlplane.KubeScheduler: 4},
		// Level 10 everywhere would log the bodies of all requests.
		Schedulers: []controlplane.Scheduler{{Args: []string{"--vmodule=schedule_one=10"}}},
	})
	log, err := openLog(cp.Component(controlplane.KubeScheduler).LogPath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.file.Close() })
	b := &bed{ControlPlane: cp, log: log, cfg: config.Default()}
	b.findVersion(t)
	b.cfg.Scheduler.KubernetesVersion = fmt.Sprintf("%d.%d", b.version.Major(), b.version.Minor())
	if err := cp.CreateNamespace(t.Context(), cluster.Team, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

// findVersion asks the API server, as the product does, and checks that the
// scheduler, whose formulas count, is of the same version.
func (b *bed) findVersion(t *testing.T) {
	t.Helper()
	info, err := b.Clientset().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if b.version, err = version.ParseGeneric(info.GitVersion); err != nil {
		t.Fatalf("the API server's version %q: %v", info.GitVersion, err)
	}
	var metrics controlplane.Metrics
	var last error
	// The scheduler is ready before it knows the certificates of clients.
	err = wait.PollUntilContextTimeout(t.Context(), waitInterval, waitTimeout, true, func(ctx context.Context) (bool, error) {
		metrics, last = b.Metrics(ctx, controlplane.KubeScheduler)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
	labels := map[string]string{
		"major": strconv.Itoa(int(b.version.Major())),
		"minor": strconv.Itoa(int(b.version.Minor())),
	}
	if metrics.Sum("kubernetes_build_info", labels) != 1 {
		t.Fatalf("the API server is %s, the scheduler is not: %s", info.GitVersion, metrics["kubernetes_build_info"])
	}
}
