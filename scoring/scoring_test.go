package scoring

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// The example of the origin: two nodes with 4 GPUs, 3 and 1 allocated, score 75
// and 25, and the pod goes to the first.
func TestDecideOriginExample(t *testing.T) {
	for _, strategy := range []config.Strategy{config.StrategyBestFit, config.StrategyMostAllocated} {
		t.Run(string(strategy), func(t *testing.T) {
			c := newCluster(t, func(cfg *config.Configuration) { cfg.Ranking.Strategy = strategy },
				gpuNode("a", list(nvidia, "4")), gpuNode("b", list(nvidia, "4")),
				gpuPod("p1", list(nvidia, "3"), on("a")), gpuPod("p2", list(nvidia, "1"), on("b")))
			d := c.decide(gpuPod("new", list(nvidia, "1")))
			want := []RankedNode{
				{Name: "a", Score: 75, FreeAfter: 0, Weight: 100}, // 100*3/4; 4-3-1
				{Name: "b", Score: 25, FreeAfter: 2},              // 100*1/4; 4-1-1
			}
			if len(d.Ranking) != 2 || d.Ranking[1].Weight < 1 || d.Ranking[1].Weight >= 100 {
				t.Fatalf("ranking %+v", d.Ranking)
			}
			d.Ranking[1].Weight = 0
			if diff := cmp.Diff(want, d.Ranking); diff != "" {
				t.Errorf("ranking (-want +got):\n%s", diff)
			}
			if !d.NeutralizeSpreading || d.UnlistedMayWin || d.Feasible != 2 {
				t.Errorf("decision %+v", d)
			}
		})
	}
}

// Four 1-GPU pods on four nodes with 2 GPUs, one after another, each bound where
// it was sent: two nodes full, two empty.
func TestDecideFourPods(t *testing.T) {
	c := newCluster(t, nil)
	for i := range 4 {
		c.SetNode(gpuNode(fmt.Sprintf("n%d", i), list(nvidia, "2")))
	}
	used := map[string]int{}
	for i := range 4 {
		pod := gpuPod(fmt.Sprintf("p%d", i), list(nvidia, "1", "cpu", "8", "memory", "64Gi"))
		d := c.decide(pod)
		used[d.Target()]++
		steeredTo(d.Target(), pod.UID)(pod)
		on(d.Target())(pod)
		c.SetPod(pod)
	}
	for node, n := range used {
		if n != 2 {
			t.Errorf("node %s got %d pods, want 2 (all: %v)", node, n, used)
		}
	}
}

func TestDecideSkips(t *testing.T) {
	onNode := func(name string) podOption {
		return func(p *corev1.Pod) {
			nodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}},
			}}
		}
	}
	selecting := func(key, value string) podOption {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
	}
	tests := map[string]struct {
		pod        *corev1.Pod
		wantReason Reason
		wantLate   bool
	}{
		"no GPU":                        {pod: gpuPod("p", list("cpu", "1")), wantReason: ReasonNoGPU},
		"zero GPUs":                     {pod: gpuPod("p", list(nvidia, "0")), wantReason: ReasonNoGPU},
		"negative":                      {pod: gpuPod("p", list(nvidia, "-1")), wantReason: ReasonInvalidRequest},
		"pinned by name":                {pod: gpuPod("p", list(nvidia, "1"), onNode("a")), wantReason: ReasonPinned},
		"pinned by name, node is full":  {pod: gpuPod("p", list(nvidia, "8"), onNode("a")), wantReason: ReasonPinned},
		"pinned by hostname":            {pod: gpuPod("p", list(nvidia, "1"), selecting(corev1.LabelHostname, "a")), wantReason: ReasonPinned},
		"one node matches":              {pod: gpuPod("p", list(nvidia, "1"), selecting("disk", "ssd")), wantReason: ReasonPinned},
		"one node matches, but is full": {pod: gpuPod("p", list(nvidia, "8"), selecting("disk", "ssd")), wantReason: ReasonNothingFits, wantLate: true},
		"no node matches yet":           {pod: gpuPod("p", list(nvidia, "1"), selecting("pool", "new")), wantReason: ReasonNothingFits, wantLate: true},
		"no node has the resource":      {pod: gpuPod("p", list(amd, "1")), wantReason: ReasonNothingFits, wantLate: true},
		"too large":                     {pod: gpuPod("p", list(nvidia, "5")), wantReason: ReasonNothingFits, wantLate: true},
		"affinity that does not parse":  {pod: gpuPod("p", list(nvidia, "1"), selecting("-", "x y")), wantReason: ReasonNothingFits, wantLate: true},
		"required affinity that does not parse": {pod: gpuPod("p", list(nvidia, "1"), func(p *corev1.Pod) {
			nodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "x", Operator: "Like"}}},
			}}
		}), wantReason: ReasonInvalidAffinity},
		"user's heaviest weight is 1": {pod: gpuPod("p", list(nvidia, "1"), preferring(1, "disk", "ssd")), wantReason: ReasonUserPreference},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, nil, gpuNode("a", list(nvidia, "4"), labelled("disk", "ssd")), gpuNode("b", list(nvidia, "4")))
			d := c.decide(tc.pod)
			if d.Reason != tc.wantReason || (d.Late != nil) != tc.wantLate || len(d.Ranking) > 0 {
				t.Errorf("got %+v, want reason %q and late %v", d, tc.wantReason, tc.wantLate)
			}
			if size := c.Size(); size.Reservations != 0 {
				t.Errorf("%d reservations, want none", size.Reservations)
			}
		})
	}
}

func TestDecideNotSynced(t *testing.T) {
	index, err := NewIndex(config.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	index.SetNode(gpuNode("a", list(nvidia, "4")))
	d := NewScorer(config.Default(), index).Decide(t.Context(), Request{Pod: gpuPod("p", list(nvidia, "1"))})
	if d.Reason != ReasonNotSynced || d.Target() != "" {
		t.Errorf("got %+v", d)
	}
}

// Names never mix: a pod is ranked by what it asks for and nothing else.
func TestDecideHeterogeneous(t *testing.T) {
	objects := []any{
		gpuNode("whole", list(nvidia, "8")),
		gpuNode("slices", list(mig, "7", nvidia, "1")),
		gpuNode("red", list(amd, "8")),
		gpuNode("mixed", list(nvidia, "2", mig, "7")),
		gpuPod("p1", list(nvidia, "7"), on("whole")),
		gpuPod("p2", list(mig, "5"), on("mixed")),
		gpuPod("p3", list(amd, "4"), on("red")),
	}
	tests := map[string]struct {
		request corev1.ResourceList
		want    []string
	}{
		// Occupied by a pod of that name first: "mixed" runs only a MIG pod, so it
		// is empty as far as whole GPUs go.
		"whole GPU":    {request: list(nvidia, "1"), want: []string{"whole", "slices", "mixed"}},
		"slice":        {request: list(mig, "1"), want: []string{"mixed", "slices"}},
		"other vendor": {request: list(amd, "1"), want: []string{"red"}},
		// Both names must fit; both nodes have both.
		"two names":           {request: list(nvidia, "1", mig, "2"), want: []string{"mixed", "slices"}},
		"two names, one full": {request: list(nvidia, "2", mig, "1"), want: []string{"mixed"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := newCluster(t, nil, objects...).decide(gpuPod("p", tc.request))
			if diff := cmp.Diff(tc.want, names(d)); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

// The user's own preferences are never reversed: terms go to the best class only
// and stay below the user's heaviest weight.
func TestDecideUserPreferences(t *testing.T) {
	zone := "topology.kubernetes.io/zone"
	objects := []any{
		gpuNode("a-free", list(nvidia, "8"), labelled(zone, "a")),
		gpuNode("b-busy", list(nvidia, "8"), labelled(zone, "b")),
		gpuPod("p1", list(nvidia, "7"), on("b-busy")),
	}
	d := newCluster(t, nil, objects...).decide(gpuPod("p", list(nvidia, "1"), preferring(10, zone, "a")))
	want := []RankedNode{{Name: "a-free", Score: 0, FreeAfter: 7, Weight: 9}} // below 10
	if diff := cmp.Diff(want, d.Ranking); diff != "" {
		t.Errorf("ranking (-want +got):\n%s", diff)
	}
	// A wish that no node meets leaves all nodes in one class.
	d = newCluster(t, nil, objects...).decide(gpuPod("p", list(nvidia, "1"), preferring(100, zone, "c")))
	if d.Target() != "b-busy" || d.Ranking[0].Weight != 99 {
		t.Errorf("ranking %+v, want b-busy first with weight 99", d.Ranking)
	}
}

// Two decisions for copies of a pod that fill the same node list the same nodes
// with the same weights, and only a full node changes the list.
func TestDecideStableWhileANodeFills(t *testing.T) {
	c := newCluster(t, nil)
	for i := range 6 {
		c.SetNode(gpuNode(fmt.Sprintf("n%d", i), list(nvidia, "8")))
	}
	var terms []string
	for i := range 24 {
		d := c.decide(gpuPod(fmt.Sprintf("p%d", i), list(nvidia, "1", "cpu", "8", "memory", "64Gi")))
		var text string
		for _, n := range d.Ranking {
			text += fmt.Sprintf("%s:%d ", n.Name, n.Weight)
		}
		terms = append(terms, text)
	}
	for i := range terms {
		if first := i / 8 * 8; terms[i] != terms[first] {
			t.Errorf("pod %d: %s, but pod %d: %s", i, terms[i], first, terms[first])
		}
	}
	if terms[0] == terms[8] {
		t.Errorf("the list did not change when a node was full: %s", terms[0])
	}
}

// Nothing is reserved for a dry run, nor in dry-run mode.
func TestDecideDryRun(t *testing.T) {
	c := newCluster(t, nil, gpuNode("a", list(nvidia, "4")))
	pod := gpuPod("p", list(nvidia, "1"))
	if d := c.Decide(t.Context(), Request{Pod: pod, Namespace: "team", UID: "u", DryRun: true}); d.Target() != "a" {
		t.Errorf("got %+v", d)
	}
	dry := newCluster(t, func(cfg *config.Configuration) { cfg.Mode = config.ModeDryRun }, gpuNode("a", list(nvidia, "4")))
	if d := dry.decide(pod); d.Target() != "a" {
		t.Errorf("got %+v", d)
	}
	if n := c.Size().Reservations + dry.Size().Reservations; n != 0 {
		t.Errorf("%d reservations, want none", n)
	}
}

// A pod that is decided about again, under the UID of its first admission, finds
// its own place free.
func TestDecideAgain(t *testing.T) {
	c := newCluster(t, nil, gpuNode("a", list(nvidia, "1")), gpuNode("b", list(nvidia, "1")))
	request := Request{Pod: gpuPod("p", list(nvidia, "1")), Namespace: "team", UID: types.UID("first")}
	first, again := c.Decide(t.Context(), request), c.Decide(t.Context(), request)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("second decision differs (-first +second):\n%s", diff)
	}
	if n := c.Size().Reservations; n != 1 {
		t.Errorf("%d reservations, want 1", n)
	}
}
