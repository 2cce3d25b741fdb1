//go:build upgrade

package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// loadNamespace has the pods that are created while replicas are replaced.
const loadNamespace = "load"

// load creates pods with one GPU, and deletes them, until it is told to end.
type load struct {
	end  context.CancelFunc
	done sync.WaitGroup
	// created are the pods that the API server has accepted, steered those that came
	// back with a decision; err is the first refusal.
	created, steered int
	err              error
}

// startLoad begins to create pods, as fast as the API server answers.
func startLoad(t *testing.T, b *scenario.Cluster) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{end: cancel}
	l.done.Go(func() {
		for ctx.Err() == nil {
			l.one(ctx, b.Client())
		}
	})
	return l
}

// one creates a pod and deletes it again.
func (l *load) one(ctx context.Context, c client.Client) {
	one := corev1.ResourceList{scenario.GPU: resource.MustParse("1")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: loadNamespace, GenerateName: "load-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "train", Image: "train", Resources: corev1.ResourceRequirements{Requests: one, Limits: one},
		}}},
	}
	err := c.Create(ctx, pod)
	if err == nil {
		l.created++
		if pod.Annotations[config.AnnotationSteering] != "" {
			l.steered++
		}
		err = c.Delete(ctx, pod, client.GracePeriodSeconds(0))
	}
	if err != nil && ctx.Err() == nil && l.err == nil {
		l.err = err
	}
}

// stop ends the load and checks that no pod was refused and that most were steered: a
// replica that ends answers what it got, so only what comes in between fails open.
func (l *load) stop(t *testing.T, phase string) {
	t.Helper()
	l.end()
	l.done.Wait()
	t.Logf("%s: %d pods created, %d steered", phase, l.created, l.steered)
	if l.err != nil {
		t.Errorf("%s: a pod was refused: %v", phase, l.err)
	}
	if l.created == 0 || l.steered*10 < l.created*9 {
		t.Errorf("%s: of %d pods only %d were steered", phase, l.created, l.steered)
	}
}

// roll replaces the program of each replica, one after the other, under load.
func roll(t *testing.T, b *scenario.Cluster, p product, phase string) {
	t.Helper()
	l := startLoad(t, b)
	for _, replica := range b.Installed.Replicas() {
		replica.Replace(p.binary)
		if err := replica.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	err := wait.PollUntilContextTimeout(t.Context(), waitInterval, noticeTimeout, true, func(ctx context.Context) (bool, error) {
		served, err := b.Installed.Served(ctx)
		for _, n := range served {
			if n == 0 {
				return false, err
			}
		}
		return true, err
	})
	if err != nil {
		t.Errorf("%s: not every replica has served since it was replaced: %v", phase, err)
	}
	l.stop(t, phase)
}

// gpu-binpacker is upgraded under load, from an earlier commit with its configuration
// to this one, and back: no pod is refused, pods pack, and each reads what the other
// has written.
func TestProductUpgrade(t *testing.T) {
	before, now := earlier(t), current(t)
	cp := controlplane.StartForTest(t, controlplane.Options{ControllerManager: true, Kwok: true, CertManager: true})
	installed, err := installation.Install(t.Context(), cp, installation.Options{
		Binary: before.binary, Configuration: before.configuration, Log: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := installed.Stop(); err != nil {
			t.Error(err)
		}
	})
	b := &bed{Cluster: &scenario.Cluster{ControlPlane: cp, Installed: installed}}
	if err := b.CreateNamespace(t.Context(), loadNamespace, map[string]string{config.LabelEnabled: "true"}); err != nil {
		t.Fatal(err)
	}
	roll(t, b.Cluster, now, "upgrade")
	b.packsOneByOne(t, "upgraded")
	roll(t, b.Cluster, before, "downgrade")
	b.packsOneByOne(t, "downgraded")
	readEachOther(t, cp, before, now)
}

// packsOneByOne is packs without the burst, which now and then takes a node more
// when two replicas decide at once.
func (b *bed) packsOneByOne(t *testing.T, phase string) {
	t.Helper()
	b.plays(t, phase, []scenario.Scenario{scenario.Score(), scenario.FourPods(), scenario.OneThreeOneThree()})
}

// readEachOther writes a state file with either program and reads it with the other;
// each also reads the other's configuration.
func readEachOther(t *testing.T, cp *controlplane.ControlPlane, before, now product) {
	t.Helper()
	nodes := []*corev1.Node{
		controlplane.Node("state-0", map[string]string{"cpu": "96", "memory": "1152Gi", string(scenario.GPU): "8"}),
		controlplane.Node("state-1", map[string]string{"cpu": "96", "memory": "1152Gi", string(scenario.GPU): "8"}),
	}
	if err := cp.CreateNodes(t.Context(), nodes...); err != nil {
		t.Fatal(err)
	}
	root, err := programs.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	sample := filepath.Join(root, "config", "samples", "job.yaml")
	for name, pair := range map[string]struct{ writer, reader product }{"newer": {before, now}, "older": {now, before}} {
		file, settings := filepath.Join(t.TempDir(), "state.yaml"), filepath.Join(t.TempDir(), "configuration.yaml")
		write(t, settings, pair.writer.configuration)
		pair.writer.run(t, cp.Kubeconfig(), "report", "--save-state", file, "-o", "json")
		pair.reader.run(t, "", "report", "--state", file, "--config", settings, "-o", "json")
		out := pair.reader.run(t, "", "explain", "--state", file, "--config", settings, "-f", sample, "-o", "json")
		var explained struct{ Candidates []struct{ Node string } }
		if err := json.Unmarshal([]byte(out), &explained); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(explained.Candidates); len(explained.Candidates) != len(nodes) {
			t.Errorf("the %s program sees candidates %s in the other's state file", name, got)
		}
	}
}
