package scoring

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// usualTerms is more terms than a pod gets with the default configuration: 16 and, in
// large clusters, 40.
const usualTerms = 64

// maxWeight is the largest weight the API allows in a preferred term.
const maxWeight = 100

// weighed is a ranking turned into weights.
type weighed struct {
	// listed are the indices, in the ranking, of the nodes that get a weight;
	// weights are theirs. The last tail of them share one weight.
	listed  []int
	weights []int64
	tail    int
	// unlistedMayWin: a node without a weight may still win.
	unlistedMayWin bool
}

// weigh gives the ranked nodes their weights.
func (s *Scorer) weigh(v *view, pod *corev1.Pod, demand *Demand, ranked []candidate, f found) weighed {
	m := newModel(&s.cfg.Scheduler, formulas{}, pod, demand, v.images, v.nodes)
	m.maxSoftTaints = f.softTaints
	ms := m.by(s.version.current())
	c := chain{cfg: &s.cfg, points: ms.pointsWhileFilling(ranked), shared: ranked[0].userScore, first: maxWeight}
	if f.userMax > 0 {
		// Karpenter reads only the heaviest preferred term: it must stay the
		// user's.
		c.first = min(c.first, f.userMax-1)
	}
	if c.first < 1 {
		return weighed{}
	}
	w := c.weigh()
	if f.userMax > 0 {
		w.keep(ms.safeForUser(f, ranked, &c, w))
	}
	if len(w.weights) == 0 {
		return weighed{}
	}
	w.unlistedMayWin = c.unlistedMayWin(ms, f, ranked, w)
	return w
}

// pointsWhileFilling returns, by each model, the ranges of the ranked nodes.
func (ms models) pointsWhileFilling(ranked []candidate) [][]pointRange {
	all := make([][]pointRange, len(ms))
	for i := range ms {
		points := make([]pointRange, len(ranked))
		for k := range ranked {
			if k > 0 && sameToModel(&ranked[k], &ranked[k-1]) {
				points[k] = points[k-1]
				continue
			}
			points[k] = ms[i].pointsWhileFilling(&ranked[k])
		}
		all[i] = points
	}
	return all
}

// keep drops all but the first n nodes.
func (w *weighed) keep(n int) {
	w.tail = max(w.tail-(len(w.listed)-n), 0)
	w.listed, w.weights = w.listed[:n], w.weights[:n]
}

// safeForUser returns how many of the listed nodes may keep their weight without
// ever reversing the user's preferences. Our weights raise the maximum that the
// scheduler divides by, so the lead of the user's best nodes over others shrinks;
// a listed node must stay ahead of every node that the user likes less:
//
//	a * 100 + o_min(k) >= a * floor(100 * s(x) / t(k)) + o_max(x) + margin
//
// with s(x) the user's own score of such a node. Where PreferNoSchedule taints
// keep us from listing nodes that the user likes more, we give no weights at all:
// which of the two the scheduler would follow is not for us to decide.
func (ms models) safeForUser(f found, ranked []candidate, c *chain, w weighed) int {
	mostByScore := map[int64]int64{}
	for i := range f.candidates {
		x := &f.candidates[i]
		if x.userScore > ranked[0].userScore {
			return 0
		}
		if points := ms.mostPoints(x); x.userScore < ranked[0].userScore {
			if most, ok := mostByScore[x.userScore]; !ok || points > most {
				mostByScore[x.userScore] = points
			}
		}
	}
	a, margin := c.cfg.Scheduler.PluginWeights.NodeAffinity, c.cfg.Weights.Margin
	for i, k := range w.listed {
		total := c.shared + w.weights[i]
		for score, most := range mostByScore {
			if a*maxNodeScore+c.least(k) < a*(maxNodeScore*score/total)+most+margin {
				return i
			}
		}
	}
	return len(w.listed)
}

// mostPoints is an upper bound, by all models, of what the other plugins give a node
// for the pod placed next.
func (ms models) mostPoints(c *candidate) int64 {
	most := ms[0].mostPoints(c)
	for i := range ms[1:] {
		most = max(most, ms[i+1].mostPoints(c))
	}
	return most
}

func (m *model) mostPoints(c *candidate) int64 {
	w := &m.cfg.PluginWeights
	return w.NodeResourcesFit*m.fit(c.nodeState, 0) + w.BalancedAllocation*maxNodeScore +
		w.ImageLocality*m.imageLocality(c.node) + m.taintPoints(c.softTaints).max
}

// most is an upper bound of what the other plugins give any node.
func (m *model) most() int64 {
	w := &m.cfg.PluginWeights
	points := maxNodeScore * (w.NodeResourcesFit + w.BalancedAllocation + w.TaintToleration)
	if len(m.images) > 0 {
		points += maxNodeScore * w.ImageLocality
	}
	return points
}

// sameToModel tells whether two nodes get the same points whatever happens.
func sameToModel(a, b *candidate) bool {
	return a.softTaints == b.softTaints && a.used.equal(b.used) &&
		slices.Equal(a.allocatable, b.allocatable) && slices.Equal(a.images, b.images)
}
