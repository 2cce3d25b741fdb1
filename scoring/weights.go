package scoring

import (
	"math"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// maxWeight is the largest weight the API allows in a preferred term.
const maxWeight = 100

// chain gives the ranked nodes weights such that the scheduler fills them in
// order. The scheduler's total for a node is
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
// l: when k is full the maximum falls to the next node and everything rescales.
//
// points are the ranges of o in rank order; shared is the sum of the user's own
// weights that all these nodes match, and counts in t; first is our weight for
// the first node. The result has a weight of at least 1 for each node that can
// be listed, strictly decreasing; it may be shorter than points.
func chain(points []pointRange, shared, first int64, cfg *config.Configuration) []int64 {
	a, margin := cfg.Scheduler.PluginWeights.NodeAffinity, cfg.Weights.Margin
	if first < 1 || len(points) == 0 {
		return nil
	}
	totals := []int64{shared + first}
	for l := 1; l < len(points); l++ {
		total := totals[l-1] - 1
		for k := range totals {
			gap := ceilDiv(points[l].max-points[k].min+margin, a)
			total = min(total, floorDiv(totals[k]*(100-gap), 100))
		}
		if total-shared < 1 {
			break
		}
		totals = append(totals, total)
	}
	for i := range totals {
		totals[i] -= shared
	}
	return totals
}

// unlistedMayWin tells whether a feasible node without a term may beat the first
// listed one. It has none of our weight, so it is behind by what our first
// weight is worth: a*100 points, or less if the user's weights count as well.
func unlistedMayWin(unlisted int64, first pointRange, shared, weight int64, cfg *config.Configuration) bool {
	if unlisted == math.MinInt64 {
		return false
	}
	a := cfg.Scheduler.PluginWeights.NodeAffinity
	lead := a * (100 - floorDiv(100*shared, shared+weight))
	return lead-(unlisted-first.min) < cfg.Weights.Margin
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
