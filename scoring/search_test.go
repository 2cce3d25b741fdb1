package scoring_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// The search that ends early and the one through all nodes list the same nodes in
// order, with the same weights.
func TestEarlyEndChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	compared := 0
	for range 400 {
		c := randomCluster(t, random)
		pod := randomIncoming(random)
		q := c.QueryOf(pod)
		v := c.MustView(t, q)
		early, reason := c.Search(t.Context(), &v, q, false)
		all, wantReason := c.Search(t.Context(), &v, q, true)
		if reason != wantReason {
			t.Fatalf("reason %q, through all nodes %q", reason, wantReason)
		}
		if reason != steering.ReasonNone {
			continue
		}
		head := func(f scoring.Found) []string {
			return f.Ranked[:min(len(f.Ranked), c.Config.Weights.MaxTerms)]
		}
		if diff := cmp.Diff(head(all), head(early)); diff != "" {
			t.Fatalf("ranking (-through all nodes +early end):\n%s", diff)
		}
		if !early.Complete && early.Candidates < all.Candidates {
			compared++
		}
	}
	if compared < 100 {
		t.Errorf("the search ended early in %d of 400 cases only", compared)
	}
}

// randomCluster has up to 300 nodes of all kinds.
func randomCluster(t *testing.T, random *rand.Rand) *clustertest.Cluster {
	t.Helper()
	change := func(c *config.Configuration) {
		c.Ranking.Strategy = []config.Strategy{config.StrategyBestFit, config.StrategyMostAllocated}[random.IntN(2)]
		c.Ranking.EmptyNodes = []config.EmptyNodes{config.SmallestFirst, config.LargestFirst}[random.IntN(2)]
		c.Weights.MaxTerms = 1 + random.IntN(16)
	}
	c := clustertest.New(t, change)
	soft := random.IntN(3) == 0
	for i := range 1 + random.IntN(300) {
		name := fmt.Sprintf("n%03d", i)
		n := clustertest.GPUNode(name, clustertest.List(clustertest.NVIDIA, fmt.Sprint(1<<random.IntN(4))), clustertest.Labelled("pool", fmt.Sprint(random.IntN(3))))
		switch random.IntN(12) {
		case 0:
			clustertest.Tainted("team", corev1.TaintEffectNoSchedule)(n)
		case 1:
			clustertest.Cordoned(n)
		case 2:
			if soft {
				clustertest.Tainted("soft", corev1.TaintEffectPreferNoSchedule)(n)
			}
		}
		c.SetNode(n)
		for j := range random.IntN(6) {
			options := []clustertest.PodOption{clustertest.On(name)}
			if random.IntN(10) == 0 {
				options = append(options, clustertest.Terminating)
			}
			c.SetPod(clustertest.GPUPod(fmt.Sprintf("%s-%d", name, j), clustertest.List(clustertest.NVIDIA, "1", "cpu", fmt.Sprint(1+random.IntN(4))), options...))
		}
	}
	return c
}

func randomIncoming(random *rand.Rand) *corev1.Pod {
	pod := clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, fmt.Sprint(1<<random.IntN(3)), "cpu", "2"))
	if random.IntN(3) == 0 {
		pod.Spec.NodeSelector = map[string]string{"pool": fmt.Sprint(random.IntN(3))}
	}
	if random.IntN(3) == 0 {
		clustertest.Tolerating(corev1.Toleration{Key: "team", Operator: corev1.TolerationOpExists})(pod)
	}
	return pod
}
