//go:build profiles

package profiles

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gpu-binpacker/gpu-binpacker/cli/schedulerconfig"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// cp is shared by all tests of the package, which therefore do not run in parallel.
var cp *controlplane.ControlPlane

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(klog.Logger{}) // controller-runtime has nothing to say here
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "profiles:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	cp, err = controlplane.Start(ctx, controlplane.Options{ControllerManager: true, Kwok: true, CertManager: true, Log: os.Stdout})
	if err != nil {
		return 1, err
	}
	defer func() {
		if code != 0 {
			cp.KeepDir()
		}
		err = errors.Join(err, cp.Stop())
	}()
	return m.Run(), nil
}

// read reads a file of testdata.
func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// schedulerWith starts the scheduler with a configuration file.
func schedulerWith(t *testing.T, file []byte) {
	t.Helper()
	if err := cp.ConfigureScheduler(controlplane.KubeScheduler, file); err != nil {
		t.Fatal(err)
	}
	if err := cp.Component(controlplane.KubeScheduler).Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// described is our configuration for the scheduler of a file, as check
// --scheduler-config prints it.
func described(t *testing.T, file []byte) []byte {
	t.Helper()
	translation, err := schedulerconfig.Translate(file, config.Default().Resources)
	if err != nil {
		t.Fatal(err)
	}
	section, err := translation.YAML()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("to set:\n%s", section)
	return configuration(section)
}

// configuration is a configuration file with nothing but a part.
func configuration(part []byte) []byte {
	return append([]byte("apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\n"), part...)
}

// installed installs one replica, so that what replicas do not know of each other
// does not show, until the end of the test.
func installed(t *testing.T, file []byte) *scenario.Cluster {
	t.Helper()
	i := installation.InstallForTest(t, cp, installation.Options{Replicas: 1, Configuration: file})
	return &scenario.Cluster{ControlPlane: cp, Installed: i}
}

// play plays a scenario with the webhook or without it, under a name of its own, and
// returns the number of nodes used.
func play(t *testing.T, c *scenario.Cluster, s scenario.Scenario, name string, steered bool) int {
	t.Helper()
	s.Name = name
	placement, err := scenario.Run(t.Context(), c, s, steered, nil)
	if err != nil {
		t.Fatal(err)
	}
	if placement.Pending > 0 {
		t.Errorf("%d pods are pending", placement.Pending)
	}
	return placement.NodesUsed()
}
