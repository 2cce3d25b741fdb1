//go:build upgrade

package upgrade

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

var (
	oldKubernetes = flag.String("old", "1.35.4", "Kubernetes version to upgrade from")
	newKubernetes = flag.String("new", "1.36.3", "Kubernetes version to upgrade to")
)

const (
	// noticeTimeout is how long after an upgrade of the API server steering may be wrong.
	noticeTimeout = time.Minute
	// waitInterval is the pause between two looks.
	waitInterval = 100 * time.Millisecond
	// versionMetric has a series for each version whose formulas count.
	versionMetric = "gpu_binpacker_scheduler_version_info"
)

// bed is a control plane with the product, and the programs of two versions.
type bed struct {
	*scenario.Cluster
	old, new programs.Binaries
}

func newBed(t *testing.T, options installation.Options) *bed {
	t.Helper()
	b := &bed{}
	var err error
	if b.old, err = programs.BuildKubernetes(t.Context(), t.Output(), *oldKubernetes); err != nil {
		t.Fatal(err)
	}
	if b.new, err = programs.BuildKubernetes(t.Context(), t.Output(), *newKubernetes); err != nil {
		t.Fatal(err)
	}
	cp := controlplane.StartForTest(t, controlplane.Options{ControllerManager: true, Kwok: true, CertManager: true, Binaries: b.old})
	options.Log = t.Output()
	installed, err := installation.Install(t.Context(), cp, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := installed.Stop(); err != nil {
			t.Error(err)
		}
	})
	b.Cluster = &scenario.Cluster{ControlPlane: cp, Installed: installed}
	return b
}

// use makes a component run another program from now on. It is killed: an API server
// that ends in an orderly way waits for its watches, for longer than this test.
func (b *bed) use(t *testing.T, component, path string) {
	t.Helper()
	c := b.Component(component)
	c.Replace(path)
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// packs plays all scenarios and checks that each packs.
func (b *bed) packs(t *testing.T, phase string) {
	t.Helper()
	b.plays(t, phase, scenario.All())
}

// plays plays scenarios, under names of their own, and checks that each packs.
func (b *bed) plays(t *testing.T, phase string, scenarios []scenario.Scenario) {
	t.Helper()
	for _, s := range scenarios {
		s.Name = phase + "-" + s.Name
		placement, err := scenario.Run(t.Context(), b.Cluster, s, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(placement); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	refused, err := b.Installed.Rejections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if refused > 0 {
		t.Errorf("%s: %d pods were refused because of the webhook", phase, refused)
	}
}

// versions returns which versions count for a replica, and from where it knows them:
// "1.36 server".
func versions(ctx context.Context, r *installation.Replica) ([]string, error) {
	metrics, err := r.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, sample := range metrics.Labels(versionMetric) {
		all = append(all, sample["version"]+" "+sample["source"])
	}
	slices.Sort(all)
	return all, nil
}

// notices waits until all replicas go by exactly these versions.
func (b *bed) notices(t *testing.T, want ...string) {
	t.Helper()
	for _, replica := range b.Installed.Replicas() {
		var got []string
		err := wait.PollUntilContextTimeout(t.Context(), waitInterval, noticeTimeout, true, func(ctx context.Context) (bool, error) {
			var err error
			got, err = versions(ctx, replica)
			return err == nil && slices.Equal(got, want), err
		})
		if err != nil {
			t.Fatalf("%s goes by %q, want %q: %v", replica.Name(), got, want, err)
		}
	}
}

func (b *bed) pids() (all []int) {
	for _, r := range b.Installed.Replicas() {
		all = append(all, r.PID())
	}
	return all
}

func minor(t *testing.T, version string) string {
	t.Helper()
	v, err := config.ParseServerVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	return v.String()
}

// A control plane is upgraded under a running webhook, the scheduler before the API
// server and after it.
// One replica: with two, now and then a burst takes a node more on any version.
func TestControlPlaneUpgrade(t *testing.T) {
	b := newBed(t, installation.Options{Replicas: 1})
	older, newer := minor(t, *oldKubernetes), minor(t, *newKubernetes)
	started := b.pids()
	b.notices(t, older+" server")
	b.packs(t, "old")

	b.use(t, controlplane.KubeScheduler, b.new.Scheduler)
	b.packs(t, "scheduler-first")
	b.use(t, controlplane.KubeScheduler, b.old.Scheduler)

	b.use(t, controlplane.APIServer, b.new.APIServer)
	b.use(t, controlplane.ControllerManager, b.new.ControllerManager)
	b.notices(t, older+" server", newer+" server")
	b.packs(t, "apiserver-first")

	b.use(t, controlplane.KubeScheduler, b.new.Scheduler)
	b.packs(t, "new")
	if got := b.pids(); !slices.Equal(got, started) {
		t.Errorf("replicas were restarted: process IDs %v, then %v", started, got)
	}
}

// Who may not read the version goes by the newest, says so and steers.
func TestVersionUnreadable(t *testing.T) {
	b := newBed(t, installation.Options{Replicas: 1})
	b.use(t, controlplane.APIServer, b.new.APIServer)
	b.use(t, controlplane.KubeScheduler, b.new.Scheduler)
	for _, name := range []string{"system:discovery", "system:public-info-viewer"} {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := b.Client().Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	replica := b.Installed.Replicas()[0]
	if err := replica.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.notices(t, fmt.Sprintf("%s assumed", config.NewestVersion))
	b.packs(t, "unreadable")
	log, err := os.ReadFile(replica.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "The version of the API server cannot be read") {
		t.Error("the log does not say that the version cannot be read")
	}
}
