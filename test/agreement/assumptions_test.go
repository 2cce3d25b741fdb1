package agreement

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/test/agreement/cluster"
)

// The chain rests on assumptions. Each test here breaks one and shows where the
// pod goes then.

// Another pod takes CPU of the target between admission and scheduling, more than
// copies of the pod would: the next node of the list wins.
func TestOtherPodsChangeThePoints(t *testing.T) {
	r := newRealScheduler(t, nil)
	nodes := bigNodes("a", "b", "c")
	running := []*corev1.Pod{smallPod("first", "1", "a")}
	d := decide(t, nil, nodes, running, smallPod("new", "1", ""))
	wantPick(t, r, nodes, running, stored(smallPod("new", "1", ""), d), d.Target())
	hog := smallPod("hog", "80", "a")
	hog.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("80")}}
	wantPick(t, r, nodes, append(running, hog), stored(smallPod("new", "1", ""), d), d.Ranking[1].Name)
}

// A pod that runs already prefers company of the new pod's kind: the scheduler
// spreads inter-pod affinity over its full 200 points, which no chain plans for.
// The pod goes there, listed or not.
func TestRunningPodAttractsTheNewOne(t *testing.T) {
	r := newRealScheduler(t, nil)
	nodes := bigNodes("a", "b", "c")
	magnet := smallPod("magnet", "1", "c")
	magnet.Spec.Containers[0].Resources = corev1.ResourceRequirements{} // no GPU pod: c counts as empty
	magnet.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		}}},
	}}
	running := []*corev1.Pod{smallPod("first", "1", "a"), magnet}
	pod := smallPod("new", "1", "")
	d := decide(t, nil, nodes, running, pod)
	wantPick(t, r, nodes, running, stored(pod, d), "a")
	pod.Labels = map[string]string{"app": "x"}
	wantPick(t, r, nodes, running, stored(pod, d), "c")
}

// Our weight must stay below the user's, and what is left may be less than an
// unlisted node's cached images are worth: the decision says so, and the pod goes
// there, within the user's class.
func TestUnlistedNodeMayWin(t *testing.T) {
	r := newRealScheduler(t, nil)
	nodes := bigNodes("a", "b")
	nodes[1].Status.Images = []corev1.ContainerImage{{Names: []string{"train:1"}, SizeBytes: 3 << 30}}
	running := []*corev1.Pod{smallPod("first", "1", "a")}
	oneTerm := func(c *config.Configuration) { c.Weights.MaxTerms = 1 }
	pod := smallPod("new", "1", "")
	d := decide(t, oneTerm, nodes, running, pod)
	if d.UnlistedMayWin {
		t.Error("without preferences of the user a lead of 200 points should do")
	}
	wantPick(t, r, nodes, running, stored(pod, d), "a")
	cluster.NodeAffinityOf(pod).PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{
		Weight: 10, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"z"}},
		}},
	}, {
		Weight: 90, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpExists},
		}},
	}, {
		Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists},
		}},
	}}
	// The user's weights add up to 200, ours is 99: 299 against 200 are 100 and
	// 66, a lead of 2*34 = 68 points. The images are worth 50 of 100 points, as
	// half of the nodes have them.
	nodes[1].Status.Images[0].SizeBytes = 12 << 30
	d = decide(t, oneTerm, nodes, running, pod)
	if !d.UnlistedMayWin {
		t.Error("the decision does not say that b may win")
	}
	wantPick(t, r, nodes, running, stored(pod, d), "b")
}

// The first listed node is not among those that the scheduler examines: the next
// listed one wins, since everything is normalised anew.
func TestTargetNotExamined(t *testing.T) {
	r := newRealScheduler(t, nil)
	nodes := bigNodes("a", "b", "c", "d")
	running := []*corev1.Pod{smallPod("first", "2", "a"), smallPod("second", "1", "b")}
	pod := smallPod("new", "1", "")
	d := decide(t, nil, nodes, running, pod)
	r.load(t, nodes, running)
	o := r.consider(t, stored(pod, d))
	for i, n := range d.Ranking {
		if best, only := o.pick(t); best != n.Name || !only {
			t.Errorf("without the first %d listed nodes %s wins, want %s", i, best, n.Name)
		}
		delete(o.feasible, n.Name)
	}
}

// bigNodes are equal nodes with 8 GPUs.
func bigNodes(names ...string) []*corev1.Node {
	var nodes []*corev1.Node
	for _, name := range names {
		nodes = append(nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "z"}},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1152Gi"),
					corev1.ResourcePods: resource.MustParse("110"), cluster.NVIDIA: resource.MustParse("8"),
				},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	return nodes
}

// smallPod asks for one GPU and some CPU; it runs on a node if that is named.
func smallPod(name, cpu, node string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster.Team, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "c", Image: "train:1",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi")},
				Limits:   corev1.ResourceList{cluster.NVIDIA: resource.MustParse("1")},
			},
		}}},
	}
	if node != "" {
		corev1defaults.SetObjectDefaults_Pod(p)
	}
	return p
}

func decide(t *testing.T, change func(*config.Configuration), nodes []*corev1.Node, running []*corev1.Pod, pod *corev1.Pod) scoring.Decision {
	t.Helper()
	cfg := config.Default()
	if change != nil {
		change(&cfg)
	}
	d := newProduct(t, cfg, nodes, running).Decide(pod)
	if d.Target() != "a" {
		t.Fatalf("decision %+v, want a first: it is the node in use", d)
	}
	return d
}

// wantPick loads the cluster into the scheduler and asks where the pod goes.
func wantPick(t *testing.T, r *realScheduler, nodes []*corev1.Node, running []*corev1.Pod, pod *corev1.Pod, want string) {
	t.Helper()
	r.load(t, nodes, defaulted(running))
	o := r.consider(t, pod)
	if got, only := o.pick(t); got != want || !only {
		t.Errorf("the pod goes to %q (alone %v), want %q; scores %+v", got, only, want, o.score(t, o.all()))
	}
}

// defaulted returns the pods with the API server's defaults filled in.
func defaulted(pods []*corev1.Pod) []*corev1.Pod {
	for _, p := range pods {
		corev1defaults.SetObjectDefaults_Pod(p)
	}
	return slices.Clone(pods)
}
