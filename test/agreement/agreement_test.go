package agreement

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/test/agreement/cluster"
)

// cases is how many random clusters each test draws.
const cases = 1000

// Over random clusters our filter agrees with the scheduler's about every node
// that is ready, not cordoned and not about to go, and our points equal those of
// the scheduler's plugins, integer for integer.
func TestPointsAgree(t *testing.T) {
	for name, tc := range profiles {
		t.Run(name, func(t *testing.T) {
			r := newRealScheduler(t, tc.profile)
			cfg := config.Default()
			tc.ours(&cfg.Scheduler)
			var seen coverage
			failed := 0
			for seed := range uint64(cases) {
				ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
					g := cluster.NewGenerator(seed)
					nodes := g.Nodes(1 + g.IntN(12))
					pods := g.Running(nodes, g.IntN(4*len(nodes)))
					r.load(t, nodes, pods)
					compare(t, r, newProduct(t, cfg, nodes, pods), nodes, g.Incoming(), &seen)
				})
				if !ok {
					failed++
				}
				if failed == 10 {
					t.Fatal("too many failures")
				}
			}
			seen.check(t)
		})
	}
}

// A pod with resources of its own, beside its containers': the scheduler's scoring
// of such a pod differs from its accounting.
func TestPointsAgreePodLevelResources(t *testing.T) {
	r := newRealScheduler(t, nil)
	var seen coverage
	for seed := range uint64(cases) {
		g := cluster.NewGenerator(seed)
		nodes := g.Nodes(1 + g.IntN(6))
		pods := g.Running(nodes, g.IntN(2*len(nodes)))
		pod := g.Incoming()
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: g.PodRequests()}
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r.load(t, nodes, pods)
			compare(t, r, newProduct(t, config.Default(), nodes, pods), nodes, pod, &seen)
		})
		if !ok {
			t.Fatal("stopped at the first failure")
		}
	}
}

// After any sequence of events the index agrees with the scheduler's cache: nodes
// come, change and go, pods too.
func TestPointsAgreeAfterEvents(t *testing.T) {
	for seed := range uint64(60) {
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			g := cluster.NewGenerator(seed)
			g.SameSizes = true
			r := newRealScheduler(t, nil)
			ours := newProduct(t, config.Default(), nil, nil)
			var nodes []*corev1.Node
			var pods []*corev1.Pod
			var seen coverage
			for range 40 {
				switch at := g.IntN(len(nodes) + 1); {
				case at == len(nodes):
					n := g.Node(fmt.Sprintf("n%02d", g.IntN(1000)))
					if slices.ContainsFunc(nodes, func(o *corev1.Node) bool { return o.Name == n.Name }) {
						continue
					}
					nodes = append(nodes, n)
					r.addNode(t, n)
					ours.Index.SetNode(n)
				case g.Chance(40):
					n := g.Node(nodes[at].Name)
					r.updateNode(t, nodes[at], n)
					nodes[at] = n
					ours.Index.SetNode(n)
				case g.Chance(15):
					r.removeNode(t, nodes[at])
					ours.Index.DeleteNode(nodes[at].Name)
					nodes = slices.Delete(nodes, at, at+1)
				case len(pods) > 0 && g.Chance(30):
					i := g.IntN(len(pods))
					r.removePod(t, pods[i])
					ours.Index.DeletePod(pods[i].UID)
					pods = slices.Delete(pods, i, i+1)
				default:
					p := g.RunningPod(nodes[at].Name)
					p.Status.Phase = corev1.PodRunning
					pods = append(pods, p)
					r.addPod(t, p)
					ours.Index.SetPod(p)
				}
				r.heartbeat(t)
				r.refresh(t)
				if compare(t, r, ours, nodes, g.Incoming(), &seen); t.Failed() {
					return
				}
			}
		})
		if !ok {
			t.Fatal("stopped at the first failure")
		}
	}
}

// Image names as kubelets report them: an image that was pulled again has another
// size under the same name, and dangling images share a name.
func TestPointsAgreeOnImages(t *testing.T) {
	image := func(megabytes int64, names ...string) corev1.ContainerImage {
		return corev1.ContainerImage{Names: names, SizeBytes: megabytes << 20}
	}
	for name, tc := range map[string]struct {
		before, after []corev1.ContainerImage
	}{
		"pulled again":   {before: []corev1.ContainerImage{image(300, "train:latest")}, after: []corev1.ContainerImage{image(900, "train:latest")}},
		"one name twice": {after: []corev1.ContainerImage{image(300, "train:latest"), image(500, "train:latest")}},
		"gone":           {before: []corev1.ContainerImage{image(300, "train:latest")}},
		"another name":   {before: []corev1.ContainerImage{image(300, "train:latest")}, after: []corev1.ContainerImage{image(300, "train:latest", "train:2")}},
	} {
		t.Run(name, func(t *testing.T) {
			g := cluster.NewGenerator(1)
			g.Plain = true
			r := newRealScheduler(t, nil)
			nodes := []*corev1.Node{g.Node("a"), g.Node("b"), g.Node("c")}
			for _, n := range nodes {
				n.Status.Images = nil
				n.Status.Allocatable[cluster.NVIDIA] = *resource.NewQuantity(8, resource.DecimalSI)
			}
			nodes[0].Status.Images = tc.before
			r.load(t, nodes, nil)
			ours := newProduct(t, config.Default(), nodes, nil)
			updated := nodes[0].DeepCopy()
			updated.Status.Images = tc.after
			r.updateNode(t, nodes[0], updated)
			nodes[0] = updated
			r.refresh(t)
			ours.Index.SetNode(updated)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: cluster.Team, UID: "p"}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "train"}},
			}}
			g.GiveGPUs(&pod.Spec.Containers[0], []string{cluster.NVIDIA}, 1)
			var seen coverage
			compare(t, r, ours, nodes, pod, &seen)
		})
	}
}

// compare compares filters and scores for the pod as we steer it.
func compare(t *testing.T, r *realScheduler, ours *cluster.Product, nodes []*corev1.Node, pod *corev1.Pod, seen *coverage) {
	t.Helper()
	pod = stored(pod, ours.Decide(pod))
	considered := r.consider(t, pod)
	predicted, reason := ours.Scorer.Predict(pod)
	var both []string
	for _, n := range nodes {
		at := slices.IndexFunc(predicted, func(p scheduler.Points) bool { return p.Name == n.Name })
		_, feasible := considered.feasible[n.Name]
		switch {
		case !isTarget(n) && at >= 0:
			t.Errorf("node %s is no target, but we rank it", n.Name)
		case isTarget(n) && feasible != (at >= 0):
			t.Errorf("node %s: feasible %v for the scheduler, %v for us (%s)", n.Name, feasible, at >= 0, reason)
		case at >= 0:
			both = append(both, n.Name)
		}
	}
	if t.Failed() || len(both) == 0 {
		return
	}
	want := considered.score(t, both)
	defer func() {
		if t.Failed() {
			describe(t, nodes, r.pods, pod)
		}
	}()
	for _, got := range predicted {
		for plugin, points := range map[string]int64{
			nodeAffinity:       got.NodeAffinity,
			taintToleration:    got.TaintToleration,
			nodeResourcesFit:   got.NodeResourcesFit,
			balancedAllocation: got.BalancedAllocation,
			imageLocality:      got.ImageLocality,
		} {
			if actual := want[got.Name].plugins[plugin]; actual != points {
				t.Errorf("node %s, %s: %d points, predicted %d", got.Name, plugin, actual, points)
			}
			seen.count(plugin, points)
		}
	}
}

// isTarget tells whether a node may be a target at all: the scheduler may well
// use the others.
func isTarget(n *corev1.Node) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Key == "DeletionCandidateOfClusterAutoscaler" {
			return false
		}
	}
	return !n.Spec.Unschedulable && n.Status.Conditions[0].Status == corev1.ConditionTrue
}

// coverage keeps which points came up, plugin -> points -> times, so that the
// tests cannot pass by comparing zeros.
type coverage map[string]map[int64]int

func (c *coverage) count(plugin string, points int64) {
	if *c == nil {
		*c = coverage{}
	}
	if (*c)[plugin] == nil {
		(*c)[plugin] = map[int64]int{}
	}
	(*c)[plugin][points]++
}

func (c *coverage) check(t *testing.T) {
	for _, plugin := range []string{nodeAffinity, taintToleration, nodeResourcesFit, balancedAllocation, imageLocality} {
		t.Logf("%s: %d different points in %d comparisons", plugin, len((*c)[plugin]), sum((*c)[plugin]))
		if len((*c)[plugin]) < 4 {
			t.Errorf("%s: only %d different points came up", plugin, len((*c)[plugin]))
		}
	}
}

func sum(counts map[int64]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// describe prints a case that failed.
func describe(t *testing.T, nodes []*corev1.Node, pods []*corev1.Pod, pod *corev1.Pod) {
	t.Helper()
	objects := []any{pod}
	for _, n := range nodes {
		objects = append(objects, n)
	}
	for _, p := range pods {
		objects = append(objects, p)
	}
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%T\n%s", o, text)
	}
}
