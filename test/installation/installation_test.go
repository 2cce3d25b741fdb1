package installation

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// TestInstall installs the shipped manifests and looks at what the test bed
// adds: that every replica serves and that no call gets lost on the way.
func TestInstall(t *testing.T) {
	cp := controlplane.StartForTest(t, controlplane.Options{CertManager: true, Kwok: true})
	nodes := controlplane.Nodes("gpu", 4, map[string]string{"cpu": "96", "memory": "1152Gi", "nvidia.com/gpu": "8"})
	if err := cp.CreateNodes(t.Context(), nodes...); err != nil {
		t.Fatal(err)
	}
	installed := InstallForTest(t, cp, Options{Replicas: 2})
	if err := installed.WaitSteering(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cp.CreateNamespace(t.Context(), "team", map[string]string{config.LabelEnabled: "true"}); err != nil {
		t.Fatal(err)
	}
	t.Run("one after another", func(t *testing.T) { testSequence(t, cp, installed) })
	t.Run("at once", func(t *testing.T) { testBurst(t, cp, installed) })
	t.Run("no call is lost", func(t *testing.T) { testNothingLost(t, installed) })
	t.Run("replicas end", func(t *testing.T) { testReplicasEnd(t, cp, installed) })
}

// testSequence creates pods one after another for three rotations.
func testSequence(t *testing.T, cp *controlplane.ControlPlane, installed *Installation) {
	before := served(t, installed)
	deadline := time.Now().Add(3 * rotationPeriod)
	created := 0
	for ; time.Now().Before(deadline); created++ {
		create(t, cp, fmt.Sprintf("sequence-%d", created))
	}
	after := served(t, installed)
	t.Logf("%d pods one after another: replicas %v -> %v", created, before, after)
	sum := 0
	for n := range after {
		sum += after[n] - before[n]
		if after[n] == before[n] {
			t.Errorf("replica %d has served nothing", n)
		}
	}
	if sum < created {
		t.Errorf("%d answers for %d pods", sum, created)
	}
}

// testBurst creates pods at once.
func testBurst(t *testing.T, cp *controlplane.ControlPlane, installed *Installation) {
	before := served(t, installed)
	const pods, parallel = 200, 20
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for n := range pods {
		group.Go(func() error { create(t, cp, fmt.Sprintf("burst-%d", n)); return nil })
	}
	_ = group.Wait()
	after := served(t, installed)
	t.Logf("%d pods at once: replicas %v -> %v", pods, before, after)
	for n := range after {
		if got := after[n] - before[n]; got < pods/10 {
			t.Errorf("replica %d has served %d of %d pods", n, got, pods)
		}
	}
}

func testNothingLost(t *testing.T, installed *Installation) {
	for name, count := range map[string]func(context.Context) (int, error){
		"rejections": installed.Rejections, "fail-opens": installed.FailOpens,
	} {
		if got, err := count(t.Context()); got != 0 || err != nil {
			t.Errorf("%d %s, %v, want 0", got, name, err)
		}
	}
}

// testReplicasEnd kills and pauses replicas; pods are created all the same.
func testReplicasEnd(t *testing.T, cp *controlplane.ControlPlane, installed *Installation) {
	first, second := installed.Replicas()[0], installed.Replicas()[1]
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	create(t, cp, "one-dead")
	if err := second.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// A signal takes a moment to arrive.
	pods := 0
	err := wait.PollUntilContextTimeout(t.Context(), waitInterval, waitTimeout, true, func(ctx context.Context) (bool, error) {
		create(t, cp, fmt.Sprintf("other-paused-%d", pods))
		pods++
		opened, err := installed.FailOpens(ctx)
		return opened > 0, err
	})
	if err != nil {
		t.Errorf("no call failed open in %d creations without a replica: %v", pods, err)
	}
	if err := second.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := first.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), waitInterval, waitTimeout, true, func(ctx context.Context) (bool, error) {
		err := installed.WaitSteering(ctx)
		return served(t, installed)[0] > 0, err
	})
	if err != nil {
		t.Errorf("the restarted replica does not serve: %v", err)
	}
	if got, err := installed.Rejections(t.Context()); got != 0 || err != nil {
		t.Errorf("%d rejections, %v, want 0", got, err)
	}
}

// create creates a GPU pod in the namespace that has opted in.
func create(t *testing.T, cp *controlplane.ControlPlane, name string) {
	t.Helper()
	pod := gpuPod("team")
	pod.Name = name
	if err := cp.Client().Create(t.Context(), pod); err != nil {
		t.Error(err)
	}
}

// served returns how many requests each replica has answered.
func served(t *testing.T, installed *Installation) []int {
	t.Helper()
	counts, err := installed.Served(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return counts
}
