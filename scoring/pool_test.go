package scoring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// checkPools checks that every pool is as if it had just been made.
func (c *testCluster) checkPools(t *testing.T) {
	t.Helper()
	for _, s := range c.Index.usage.list {
		if c.Index.usage.latest[s.slot].Load() != s {
			t.Fatalf("the latest state of %s is not its state", s.name)
		}
	}
	for kind, p := range c.Index.pools.byKind {
		fresh := newPool(kind, p.filter, c.Index.pools.key)
		for _, s := range c.Index.usage.list {
			fresh.join(s)
		}
		if diff := cmp.Diff(describePool(fresh, c.Index.usage.latest), describePool(p, c.Index.usage.latest)); diff != "" {
			t.Fatalf("pool %+v differs from a new one (-new +kept):\n%s", kind, diff)
		}
		// These two only ever grow.
		want := fresh.stats
		want.mostSoftTaints, want.invalid = p.stats.mostSoftTaints, p.stats.invalid
		if want != p.stats || fresh.stats.mostSoftTaints > p.stats.mostSoftTaints {
			t.Fatalf("pool %+v counts %+v, a new one %+v", kind, p.stats, fresh.stats)
		}
	}
}

func describePool(p *pool, latest latestStates) []string {
	var out []string
	p.tree.Ascend(func(e entry) bool {
		out = append(out, fmt.Sprintf("%s key %+v used %+v", e.state.name, e.key, e.state.used))
		return true
	})
	p.scattered.Ascend(func(e place) bool {
		out = append(out, fmt.Sprintf("%s scattered %d %d used %+v", e.node.name, e.class, e.hash, latest.of(e).used))
		return true
	})
	return out
}

func (w *world) checkPools() {
	w.t.Helper()
	w.testCluster.checkPools(w.t)
}

// The search that ends early and the one through all nodes list the same nodes in
// order, with the same weights.
func TestEarlyEndChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	compared := 0
	for range 400 {
		c := randomCluster(t, random)
		pod := randomIncoming(random)
		demand, _ := NewDemand(pod, c.Scorer.cfg.Resources)
		v := c.viewOf(pod, &demand)
		early, reason := c.feasible(t.Context(), &v, &Query{Pod: pod, Demand: &demand}, bestOnly)
		all, wantReason := c.feasible(t.Context(), &v, &Query{Pod: pod, Demand: &demand}, allNodes)
		if reason != wantReason {
			t.Fatalf("reason %q, through all nodes %q", reason, wantReason)
		}
		if reason != ReasonNone {
			continue
		}
		head := func(f found) []string {
			var out []string
			for i, n := range c.rank(f, &v) {
				if i < c.Scorer.cfg.Weights.MaxTerms {
					out = append(out, n.name)
				}
			}
			return out
		}
		if diff := cmp.Diff(head(all), head(early)); diff != "" {
			t.Fatalf("ranking (-through all nodes +early end):\n%s", diff)
		}
		if !early.complete && len(early.candidates) < len(all.candidates) {
			compared++
		}
	}
	if compared < 100 {
		t.Errorf("the search ended early in %d of 400 cases only", compared)
	}
}

// randomCluster has up to 300 nodes of all kinds.
func randomCluster(t *testing.T, random *rand.Rand) *testCluster {
	t.Helper()
	change := func(c *config.Configuration) {
		c.Ranking.Strategy = []config.Strategy{config.StrategyBestFit, config.StrategyMostAllocated}[random.IntN(2)]
		c.Ranking.EmptyNodes = []config.EmptyNodes{config.SmallestFirst, config.LargestFirst}[random.IntN(2)]
		c.Weights.MaxTerms = 1 + random.IntN(16)
	}
	c := newCluster(t, change)
	soft := random.IntN(3) == 0
	for i := range 1 + random.IntN(300) {
		name := fmt.Sprintf("n%03d", i)
		n := gpuNode(name, list(nvidia, fmt.Sprint(1<<random.IntN(4))), labelled("pool", fmt.Sprint(random.IntN(3))))
		switch random.IntN(12) {
		case 0:
			tainted("team", corev1.TaintEffectNoSchedule)(n)
		case 1:
			cordoned(n)
		case 2:
			if soft {
				tainted("soft", corev1.TaintEffectPreferNoSchedule)(n)
			}
		}
		c.SetNode(n)
		for j := range random.IntN(6) {
			options := []podOption{on(name)}
			if random.IntN(10) == 0 {
				options = append(options, terminating)
			}
			c.SetPod(gpuPod(fmt.Sprintf("%s-%d", name, j), list(nvidia, "1", "cpu", fmt.Sprint(1+random.IntN(4))), options...))
		}
	}
	return c
}

func randomIncoming(random *rand.Rand) *corev1.Pod {
	pod := gpuPod("new", list(nvidia, fmt.Sprint(1<<random.IntN(3)), "cpu", "2"))
	if random.IntN(3) == 0 {
		pod.Spec.NodeSelector = map[string]string{"pool": fmt.Sprint(random.IntN(3))}
	}
	if random.IntN(3) == 0 {
		tolerating(corev1.Toleration{Key: "team", Operator: corev1.TolerationOpExists})(pod)
	}
	return pod
}

// Pods of one kind share a pool, and there are never too many pools.
func TestPoolsAreBounded(t *testing.T) {
	c := newCluster(t, nil, gpuNode("n", list(nvidia, "8"), labelled("pool", "1")))
	for i := range 3 * maxPools {
		pod := gpuPod(fmt.Sprint("p", i), list(nvidia, "1"))
		pod.Spec.Tolerations = []corev1.Toleration{{Key: fmt.Sprint("t", i)}}
		c.decide(pod)
		c.decide(gpuPod(fmt.Sprint("q", i), list(nvidia, "1"))) // used again and again
	}
	if got := len(c.Index.pools.byKind); got != maxPools {
		t.Errorf("%d pools, want %d", got, maxPools)
	}
	plain := gpuPod("p", list(nvidia, "1"))
	if c.Index.pools.byKind[podKind{gpu: nvidia, count: 1, constraints: signature(plain)}] == nil {
		t.Error("the pool that is used all the time was dropped")
	}
}

// A pool is for all pods of a kind, whatever else the first one asked for.
func TestPoolIsForItsKind(t *testing.T) {
	c := newCluster(t, nil, gpuNode("both", list(nvidia, "8", "nvidia.com/mig-1g.5gb", "8")), gpuNode("one", list(nvidia, "4")))
	c.decide(gpuPod("first", list(nvidia, "1", "cpu", "90", "nvidia.com/mig-1g.5gb", "1")))
	if d := c.decide(gpuPod("second", list(nvidia, "1"))); !slices.Contains(names(d), "one") {
		t.Errorf("decision %+v, want the node without the other resource too", d)
	}
}

// A pod with more constraints than any real one is left alone at once: comparing
// them with every node would hold up everybody.
func TestTooManyConstraints(t *testing.T) {
	c := newCluster(t, nil, gpuNode("n", list(nvidia, "8")))
	terms := func(n int) podOption {
		return func(p *corev1.Pod) {
			required := &corev1.NodeSelector{}
			for range n {
				required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: corev1.NodeSelectorOpDoesNotExist}},
				})
			}
			nodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = required
		}
	}
	tolerations := func(p *corev1.Pod) { p.Spec.Tolerations = make([]corev1.Toleration, 101) }
	values := func(p *corev1.Pod) {
		terms(1)(p)
		nodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0] =
			corev1.NodeSelectorRequirement{Key: "a", Operator: corev1.NodeSelectorOpNotIn, Values: make([]string, 1001)}
	}
	for name, tc := range map[string]struct {
		option podOption
		want   Reason
	}{
		"some terms": {terms(20), ReasonPinned}, "many terms": {terms(51), ReasonTooLarge},
		"many tolerations": {tolerations, ReasonTooLarge}, "many values": {values, ReasonTooLarge},
	} {
		if d := c.decide(gpuPod(name, list(nvidia, "1"), tc.option)); d.Reason != tc.want {
			t.Errorf("%s: reason %q, want %q", name, d.Reason, tc.want)
		}
	}
	if got := len(c.Index.pools.byKind); got != 1 {
		t.Errorf("%d pools, want that of the pod with some terms only", got)
	}
}

// A median between two kinds of pods may move with every pod. The pools stay.
func TestUnitStays(t *testing.T) {
	c := newCluster(t, nil, gpuNode("n", list(nvidia, "64")))
	c.decide(gpuPod("first", list(nvidia, "1")))
	pools := c.Index.pools.byKind
	before := len(pools)
	for i := range 20 {
		c.SetPod(gpuPod(fmt.Sprint("p", i), list(nvidia, "1", "cpu", fmt.Sprint(1+i%2*20), "memory", "1Gi"), on("n")))
		c.Decide(t.Context(), Request{Pod: gpuPod("probe", list(nvidia, "1")), Namespace: "team", UID: "u", DryRun: true})
		if len(c.Index.pools.byKind) < before {
			t.Fatal("the pools were made anew")
		}
	}
	unit := c.Index.pools.unit
	c.clock = c.clock.Add(unitAge)
	c.decide(gpuPod("later", list(nvidia, "1")))
	if c.Index.pools.unit == unit {
		t.Error("the unit never follows")
	}
}

// What makes a difference to a node makes one to the signature; texts that run into
// each other do not hide it.
func TestSignature(t *testing.T) {
	required := func(terms ...corev1.NodeSelectorTerm) podOption {
		return func(p *corev1.Pod) {
			nodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
		}
	}
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	expressions := func(r ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: r}
	}
	selector := func(pairs ...string) podOption {
		return func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{}
			for i := 0; i < len(pairs); i += 2 {
				p.Spec.NodeSelector[pairs[i]] = pairs[i+1]
			}
		}
	}
	different := []podOption{
		func(*corev1.Pod) {},
		selector("a", "b"), selector("ab", ""), selector("a", "b", "c", "d"), selector("a", "bc", "d", ""),
		required(), required(expressions()), required(expressions(in("a", "b"))), required(expressions(in("a", "b", "c"))),
		required(expressions(in("a", "b"), in("c"))), required(expressions(in("a", "b")), expressions(in("c"))),
		required(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in("a", "b")}}),
		required(expressions(corev1.NodeSelectorRequirement{Key: "a", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"b"}})),
		tolerating(corev1.Toleration{Key: "a", Value: "b"}), tolerating(corev1.Toleration{Key: "ab"}),
		tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists}),
		tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}),
	}
	seen := map[string]int{}
	for i, option := range different {
		pod := gpuPod("p", nil, option)
		text := signature(pod)
		if before, ok := seen[text]; ok {
			t.Errorf("variants %d and %d have the signature %q", before, i, text)
		}
		seen[text] = i
		if got := signature(constraintsOf(pod)); got != text {
			t.Errorf("variant %d: the reduced pod has the signature %q, want %q", i, got, text)
		}
	}
	a, b := gpuPod("p", nil, selector("a", "1", "b", "2")), gpuPod("other", list(nvidia, "3"), selector("b", "2", "a", "1"))
	b.Labels, b.Spec.Tolerations = map[string]string{"x": "y"}, nil
	if signature(a) != signature(b) {
		t.Error("the order of the selector or something else makes a difference")
	}
}

// Readers keep what they have seen while events change the index.
func TestViewStays(t *testing.T) {
	c := newCluster(t, nil, gpuNode("a", list(nvidia, "8")), gpuNode("b", list(nvidia, "8")))
	pod := gpuPod("new", list(nvidia, "1"))
	demand, _ := NewDemand(pod, c.Scorer.cfg.Resources)
	v := c.viewOf(pod, &demand)
	before := c.decideOn(t.Context(), &v, &Query{Pod: pod, Demand: &demand})
	c.SetPod(gpuPod("p", list(nvidia, "5"), on("b")))
	c.DeleteNode("a")
	for i := range 50 {
		c.SetNode(gpuNode(fmt.Sprint("new-", i), list(nvidia, "8")))
	}
	after := c.decideOn(t.Context(), &v, &Query{Pod: pod, Demand: &demand})
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the view changed:\n%s", diff)
	}
	if now := c.decide(pod); slices.Equal(names(now), names(before)) {
		t.Errorf("a new view shows the old state: %v", names(now))
	}
}
