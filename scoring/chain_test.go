package scoring

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// weighted returns how many nodes a scheduler takes that examines all nodes and, of
// those with the same weight, takes the emptiest.
func (b burst) weighted(t *testing.T) (taken int) {
	free := map[string]int{}
	var nodes []string
	for i := range b.nodes {
		nodes = append(nodes, fmt.Sprintf("n%03d", i))
		free[nodes[i]] = gpusOfNode
	}
	for _, pod := range b.decide(t, nodes) {
		weights := map[string]int32{}
		for _, term := range PreferredTerms(pod) {
			weights[term.Preference.MatchFields[0].Values[0]] = term.Weight
		}
		slices.SortStableFunc(nodes, func(a, b string) int {
			return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(free[b], free[a]), cmp.Compare(a, b))
		})
		first := slices.IndexFunc(nodes, func(name string) bool { return free[name] > 0 })
		free[nodes[first]]--
	}
	for _, left := range free {
		if left < gpusOfNode {
			taken++
		}
	}
	return taken
}

// Before 1.36 weights suffice for the order of 11 nodes. Bursts of 240 pods that two
// replicas see 90 to 240 pods late use fewer nodes with a list of 14, of which the last
// four share a weight, than with one of 11.
func TestListOfTwoReplicas(t *testing.T) {
	mean := func(maxTerms int) float64 {
		taken, runs := 0, 0
		for lag := 90; lag <= 240; lag += 30 {
			for seed := range uint64(8) {
				taken += burst{replicas: 2, nodes: 60, lag: lag, seed: seed, configure: func(c *config.Configuration) {
					c.Scheduler.KubernetesVersion, c.Weights.MaxTerms = "1.35", maxTerms
				}}.weighted(t)
				runs++
			}
		}
		return float64(taken) / float64(runs)
	}
	inOrder, shared := mean(11), mean(config.Default().Weights.MaxTerms)
	t.Logf("of 30 nodes: %.2f with 11 in order, %.2f with the default", inOrder, shared)
	if shared >= inOrder {
		t.Errorf("%.2f nodes are used with the default, %.2f with 11 in order", shared, inOrder)
	}
}
