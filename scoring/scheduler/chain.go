package scheduler

import (
	"math"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Chain gives ranked nodes weights such that the scheduler fills them in order.
// The scheduler's total for a node is
//
//	a * floor(100 * t / max t) + o
//
// with t the sum of matching preferred weights, the maximum over the feasible
// nodes, a the weight of its NodeAffinity plugin and o the points of all other
// plugins. While node k is the first feasible one of the list its t is the
// maximum, so it beats a later node l if
//
//	a * (100 - 100 * t(l)/t(k)) >= o_max(l) - o_min(k) + margin
//
// which gives t(l) = floor(t(k) * (1 - g/100)) with
// g = ceil((o_max(l) - o_min(k) + margin) / a). It must hold for every k before
// l: when k is full the maximum falls to the next node and everything rescales. And
// it must hold by the formulas of every version that the scheduler may be of.
type Chain struct {
	Cfg *config.Configuration
	// Points are the ranges of o in rank order, by each of the formulas.
	Points [][]PointRange
	// Shared is the sum of the user's own weights that all these nodes match, and
	// counts in t; First is our weight for the first node, at least 1.
	Shared, First int64
}

// Weigh returns the weights, of at least 1 each. Nodes beyond the configured
// number of terms, and those for which the weights do not suffice, are the tail.
func (c *Chain) Weigh() Weights {
	nodes := len(c.Points[0])
	head := min(nodes, c.Cfg.Weights.MaxTerms)
	if c.Cfg.Weights.Weighting == config.WeightingEqual {
		return c.equal(head)
	}
	totals := make([]int64, 0, usualTerms)
	for l := range head {
		total := c.total(totals, l)
		if total-c.Shared < 1 {
			break // the rest would have none either
		}
		totals = append(totals, total)
	}
	if nodes == head {
		c.keep(c.listEnd(len(totals)))
	}
	if len(c.Points[0]) == len(totals) {
		return c.listed(totals, nil, 0)
	}
	return c.withTail(totals)
}

// listEnd is how many nodes are listed where weights suffice for the order of so many,
// and the scheduler examines all nodes. From three quarters of the terms on a list is
// long enough for a burst that two replicas decide about (see TestTwoReplicasBurst). A
// shorter one goes on with nodes that share the last weight (see TestListOfTwoReplicas):
// a quarter of the terms at most, since the order among those gets lost. Where few can
// be in order, the order of the second and third matters more than a long list.
func (c *Chain) listEnd(ordered int) int {
	most := c.Cfg.Weights.MaxTerms
	if 2*ordered < most || 4*ordered >= 3*most {
		return ordered
	}
	return min(ordered-1+max(most/4, 1), len(c.Points[0]))
}

// keep drops all but the first n nodes.
func (c *Chain) keep(n int) {
	for i := range c.Points {
		c.Points[i] = c.Points[i][:n]
	}
}

// total is t(l), given those of all nodes before it.
func (c *Chain) total(totals []int64, l int) int64 {
	if len(totals) == 0 {
		return c.Shared + c.First
	}
	a, margin := c.Cfg.Scheduler.PluginWeights.NodeAffinity, c.Cfg.Weights.Margin
	total := totals[len(totals)-1] - 1
	for _, points := range c.Points {
		for k := range totals {
			if k+1 < len(totals) && points[k].min == points[k+1].min {
				continue // the same gap from the larger total allows more, or both nothing
			}
			gap := ceilDiv(points[l].max-points[k].min+margin, a)
			total = min(total, floorDiv(totals[k]*(100-gap), 100))
		}
	}
	return total
}

// Least is the least that the other plugins give a node by any of the formulas.
func (c *Chain) Least(k int) int64 {
	least := c.Points[0][k].min
	for _, points := range c.Points[1:] {
		least = min(least, points[k].min)
	}
	return least
}

// sameMost tells whether the most that the other plugins give two nodes is the same
// by each of the formulas.
func (c *Chain) sameMost(k, l int) bool {
	for _, points := range c.Points {
		if points[k].max != points[l].max {
			return false
		}
	}
	return true
}

// withTail adds the tail: one weight, the largest that is right for all of its
// nodes. The ordered nodes may have used up all weights; then the last ones, at
// most half, give way and join the tail: that every part of the cluster has a listed
// node, and that the list is long enough for a burst of which two replicas decide,
// matters more than the order of the last few.
func (c *Chain) withTail(totals []int64) Weights {
	tail, common := c.tail(totals)
	if len(totals)+len(tail) == len(c.Points[0]) {
		return c.listed(totals, tail, common)
	}
	kept := (len(totals) + 1) / 2
	most, _ := c.tail(totals[:kept])
	for len(totals)+len(tail) < kept+len(most) {
		totals = totals[:len(totals)-1]
		tail, common = c.tail(totals)
	}
	return c.listed(totals, tail, common)
}

// tail returns those nodes beyond the ordered ones that can have a weight below
// all totals of these, and the largest that they can have in common.
func (c *Chain) tail(totals []int64) (nodes []int, common int64) {
	common = math.MaxInt64
	nodes = make([]int, 0, len(c.Points[0])-len(totals))
	var weight int64
	for l := len(totals); l < len(c.Points[0]); l++ {
		if l == len(totals) || !c.sameMost(l, l-1) { // most are alike
			weight = c.total(totals, l) - c.Shared
		}
		if weight >= 1 {
			common = min(common, weight)
			nodes = append(nodes, l)
		}
	}
	return nodes, common
}

// listed puts the ordered nodes and the tail together.
func (c *Chain) listed(totals []int64, tail []int, common int64) Weights {
	n := len(totals) + len(tail)
	w := Weights{Tail: len(tail), Listed: make([]int, 0, n), Weights: make([]int64, 0, n)}
	for l, total := range totals {
		w.Listed, w.Weights = append(w.Listed, l), append(w.Weights, total-c.Shared)
	}
	for _, l := range tail {
		w.Listed, w.Weights = append(w.Listed, l), append(w.Weights, common)
	}
	return w
}

// equal gives the first n nodes the same weight.
func (c *Chain) equal(n int) Weights {
	w := Weights{}
	for i := range n {
		w.Listed, w.Weights = append(w.Listed, i), append(w.Weights, c.First)
	}
	return w
}

// MayLose tells whether the first node, with its weight, may be beaten by one that
// has only the user's weights and at most so many points from the other plugins.
func (c *Chain) MayLose(weight, userScore, points int64) bool {
	a := c.Cfg.Scheduler.PluginWeights.NodeAffinity
	lead := a * (MaxNodeScore - MaxNodeScore*userScore/(c.Shared+weight))
	return lead-(points-c.Least(0)) < c.Cfg.Weights.Margin
}

// ceilDiv and floorDiv divide by a positive number, towards plus and minus
// infinity.
func ceilDiv(x, y int64) int64 { return -floorDiv(-x, y) }

func floorDiv(x, y int64) int64 {
	q := x / y
	if x%y < 0 {
		q--
	}
	return q
}

// usualTerms is more terms than a pod gets with the default configuration: 16 and, in
// large clusters, 40.
const usualTerms = 64

// Weights are a ranking turned into weights.
type Weights struct {
	// Listed are the indices, in the ranking, of the nodes that get a weight;
	// weights are theirs. The last tail of them share one weight.
	Listed  []int
	Weights []int64
	Tail    int
}

// Keep drops all but the first n nodes.
func (w *Weights) Keep(n int) {
	w.Tail = max(w.Tail-(len(w.Listed)-n), 0)
	w.Listed, w.Weights = w.Listed[:n], w.Weights[:n]
}
