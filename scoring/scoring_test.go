package scoring_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// The example of the origin: two nodes with 4 GPUs, 3 and 1 allocated, score 75
// and 25, and the pod goes to the first.
func TestDecideOriginExample(t *testing.T) {
	for _, strategy := range []config.Strategy{config.StrategyBestFit, config.StrategyMostAllocated} {
		t.Run(string(strategy), func(t *testing.T) {
			c := clustertest.New(t, func(cfg *config.Configuration) { cfg.Ranking.Strategy = strategy },
				clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "4")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "4")),
				clustertest.GPUPod("p1", clustertest.List(clustertest.NVIDIA, "3"), clustertest.On("a")), clustertest.GPUPod("p2", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("b")))
			d := c.DecideOn(clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "1")))
			want := []scoring.RankedNode{
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
	c := clustertest.New(t, nil)
	for i := range 4 {
		c.SetNode(clustertest.GPUNode(fmt.Sprintf("n%d", i), clustertest.List(clustertest.NVIDIA, "2")))
	}
	used := map[string]int{}
	for i := range 4 {
		pod := clustertest.GPUPod(fmt.Sprintf("p%d", i), clustertest.List(clustertest.NVIDIA, "1", "cpu", "8", "memory", "64Gi"))
		d := c.DecideOn(pod)
		used[d.Target()]++
		clustertest.SteeredTo(d.Target(), pod.UID)(pod)
		clustertest.On(d.Target())(pod)
		c.SetPod(pod)
	}
	for node, n := range used {
		if n != 2 {
			t.Errorf("node %s got %d pods, want 2 (all: %v)", node, n, used)
		}
	}
}

func TestDecideSkips(t *testing.T) {
	onNode := func(name string) clustertest.PodOption {
		return func(p *corev1.Pod) {
			clustertest.NodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}},
			}}
		}
	}
	selecting := func(key, value string) clustertest.PodOption {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
	}
	tests := map[string]struct {
		pod        *corev1.Pod
		wantReason steering.Reason
		wantLate   bool
	}{
		"no GPU":                        {pod: clustertest.GPUPod("p", clustertest.List("cpu", "1")), wantReason: steering.ReasonNoGPU},
		"zero GPUs":                     {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "0")), wantReason: steering.ReasonNoGPU},
		"negative":                      {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "-1")), wantReason: steering.ReasonInvalidRequest},
		"pinned by name":                {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), onNode("a")), wantReason: steering.ReasonPinned},
		"pinned by name, node is full":  {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "8"), onNode("a")), wantReason: steering.ReasonPinned},
		"pinned by hostname":            {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), selecting(corev1.LabelHostname, "a")), wantReason: steering.ReasonPinned},
		"one node matches":              {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), selecting("disk", "ssd")), wantReason: steering.ReasonPinned},
		"one node matches, but is full": {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "8"), selecting("disk", "ssd")), wantReason: steering.ReasonNothingFits, wantLate: true},
		"no node matches yet":           {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), selecting("pool", "new")), wantReason: steering.ReasonNothingFits, wantLate: true},
		"no node has the resource":      {pod: clustertest.GPUPod("p", clustertest.List(clustertest.AMD, "1")), wantReason: steering.ReasonNothingFits, wantLate: true},
		"too large":                     {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "5")), wantReason: steering.ReasonNothingFits, wantLate: true},
		"affinity that does not parse":  {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), selecting("-", "x y")), wantReason: steering.ReasonNothingFits, wantLate: true},
		"required affinity that does not parse": {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) {
			clustertest.NodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "x", Operator: "Like"}}},
			}}
		}), wantReason: steering.ReasonInvalidAffinity},
		"user's heaviest weight is 1": {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), clustertest.Preferring(1, "disk", "ssd")), wantReason: steering.ReasonUserPreference},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New(t, nil, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Labelled("disk", "ssd")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "4")))
			d := c.DecideOn(tc.pod)
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
	ix, err := index.New(config.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ix.SetNode(clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "4")))
	d := scoring.NewScorer(config.Default(), ix).Decide(t.Context(), scoring.Request{Pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"))})
	if d.Reason != steering.ReasonNotSynced || d.Target() != "" {
		t.Errorf("got %+v", d)
	}
}

// Names never mix: a pod is ranked by what it asks for and nothing else.
func TestDecideHeterogeneous(t *testing.T) {
	objects := []any{
		clustertest.GPUNode("whole", clustertest.List(clustertest.NVIDIA, "8")),
		clustertest.GPUNode("slices", clustertest.List(clustertest.MIG, "7", clustertest.NVIDIA, "1")),
		clustertest.GPUNode("red", clustertest.List(clustertest.AMD, "8")),
		clustertest.GPUNode("mixed", clustertest.List(clustertest.NVIDIA, "2", clustertest.MIG, "7")),
		clustertest.GPUPod("p1", clustertest.List(clustertest.NVIDIA, "7"), clustertest.On("whole")),
		clustertest.GPUPod("p2", clustertest.List(clustertest.MIG, "5"), clustertest.On("mixed")),
		clustertest.GPUPod("p3", clustertest.List(clustertest.AMD, "4"), clustertest.On("red")),
	}
	tests := map[string]struct {
		request corev1.ResourceList
		want    []string
	}{
		// Occupied by a pod of that name first: "mixed" runs only a MIG pod, so it
		// is empty as far as whole GPUs go.
		"whole GPU":    {request: clustertest.List(clustertest.NVIDIA, "1"), want: []string{"whole", "slices", "mixed"}},
		"slice":        {request: clustertest.List(clustertest.MIG, "1"), want: []string{"mixed", "slices"}},
		"other vendor": {request: clustertest.List(clustertest.AMD, "1"), want: []string{"red"}},
		// Both names must fit; both nodes have both.
		"two names":           {request: clustertest.List(clustertest.NVIDIA, "1", clustertest.MIG, "2"), want: []string{"mixed", "slices"}},
		"two names, one full": {request: clustertest.List(clustertest.NVIDIA, "2", clustertest.MIG, "1"), want: []string{"mixed"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := clustertest.New(t, nil, objects...).DecideOn(clustertest.GPUPod("p", tc.request))
			if diff := cmp.Diff(tc.want, clustertest.Names(d)); diff != "" {
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
		clustertest.GPUNode("a-free", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Labelled(zone, "a")),
		clustertest.GPUNode("b-busy", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Labelled(zone, "b")),
		clustertest.GPUPod("p1", clustertest.List(clustertest.NVIDIA, "7"), clustertest.On("b-busy")),
	}
	d := clustertest.New(t, nil, objects...).DecideOn(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), clustertest.Preferring(10, zone, "a")))
	want := []scoring.RankedNode{{Name: "a-free", Score: 0, FreeAfter: 7, Weight: 9}} // below 10
	if diff := cmp.Diff(want, d.Ranking); diff != "" {
		t.Errorf("ranking (-want +got):\n%s", diff)
	}
	// A wish that no node meets leaves all nodes in one class.
	d = clustertest.New(t, nil, objects...).DecideOn(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), clustertest.Preferring(100, zone, "c")))
	if d.Target() != "b-busy" || d.Ranking[0].Weight != 99 {
		t.Errorf("ranking %+v, want b-busy first with weight 99", d.Ranking)
	}
}

// Two decisions for copies of a pod that fill the same node list the same nodes
// with the same weights, and only a full node changes the list.
func TestDecideStableWhileANodeFills(t *testing.T) {
	c := clustertest.New(t, nil)
	for i := range 6 {
		c.SetNode(clustertest.GPUNode(fmt.Sprintf("n%d", i), clustertest.List(clustertest.NVIDIA, "8")))
	}
	var terms []string
	for i := range 24 {
		d := c.DecideOn(clustertest.GPUPod(fmt.Sprintf("p%d", i), clustertest.List(clustertest.NVIDIA, "1", "cpu", "8", "memory", "64Gi")))
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
	c := clustertest.New(t, nil, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "4")))
	pod := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"))
	if d := c.Decide(t.Context(), scoring.Request{Pod: pod, Namespace: "team", UID: "u", DryRun: true}); d.Target() != "a" {
		t.Errorf("got %+v", d)
	}
	dry := clustertest.New(t, func(cfg *config.Configuration) { cfg.Mode = config.ModeDryRun }, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "4")))
	if d := dry.DecideOn(pod); d.Target() != "a" {
		t.Errorf("got %+v", d)
	}
	if n := c.Size().Reservations + dry.Size().Reservations; n != 0 {
		t.Errorf("%d reservations, want none", n)
	}
}

// A pod that is decided about again, under the UID of its first admission, finds
// its own place free.
func TestDecideAgain(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "1")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "1")))
	request := scoring.Request{Pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1")), Namespace: "team", UID: types.UID("first")}
	first, again := c.Decide(t.Context(), request), c.Decide(t.Context(), request)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("second decision differs (-first +second):\n%s", diff)
	}
	if n := c.Size().Reservations; n != 1 {
		t.Errorf("%d reservations, want 1", n)
	}
}

// Readers keep what they have seen while events change the index.
func TestViewStays(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "8")))
	pod := clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "1"))
	q := c.QueryOf(pod)
	v := c.MustView(t, q)
	before := c.OnView(t.Context(), &v, q)
	c.SetPod(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "5"), clustertest.On("b")))
	c.DeleteNode("a")
	for i := range 50 {
		c.SetNode(clustertest.GPUNode(fmt.Sprint("new-", i), clustertest.List(clustertest.NVIDIA, "8")))
	}
	after := c.OnView(t.Context(), &v, q)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the view changed:\n%s", diff)
	}
	if now := c.DecideOn(pod); slices.Equal(clustertest.Names(now), clustertest.Names(before)) {
		t.Errorf("a new view shows the old state: %v", clustertest.Names(now))
	}
}
