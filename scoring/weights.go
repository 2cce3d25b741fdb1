package scoring

import (
	"slices"
)

// weigh gives the ranked nodes their weights, and tells whether a node without one may
// still win.
func (s *Scorer) weigh(v *View, q *Query, ranked []candidate, f found) (w weighed, unlisted bool) {
	m := newModel(&s.cfg.Scheduler, formulas{}, q.Pod, q.Demand, v.images, v.nodes)
	m.maxSoftTaints = f.softTaints
	ms := m.by(s.version.current())
	c := chain{cfg: &s.cfg, points: ms.pointsWhileFilling(len(ranked), func(i int) *schedulerNode { return &ranked[i].schedulerNode }), shared: ranked[0].userScore, first: maxWeight}
	if f.userMax > 0 {
		// Karpenter reads only the heaviest preferred term: it must stay the
		// user's.
		c.first = min(c.first, f.userMax-1)
	}
	if c.first < 1 {
		return weighed{}, false
	}
	w = c.weigh()
	if f.userMax > 0 {
		w.keep(safeForUser(ms, f, ranked, &c, w))
	}
	if len(w.weights) == 0 {
		return weighed{}, false
	}
	return w, unlistedMayWin(&c, ms, f, ranked, w)
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
func safeForUser(ms models, f found, ranked []candidate, c *chain, w weighed) int {
	mostByScore := map[int64]int64{}
	for i := range f.candidates {
		x := &f.candidates[i]
		if x.userScore > ranked[0].userScore {
			return 0
		}
		if points := ms.mostPoints(&x.schedulerNode); x.userScore < ranked[0].userScore {
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

// unlistedMayWin tells whether a feasible node without a term may beat the first
// listed one now.
func unlistedMayWin(c *chain, ms models, f found, ranked []candidate, w weighed) bool {
	// Candidates that the search did not visit are of pods without preferences.
	if !f.complete && c.mayLose(w.weights[0], 0, ms[0].most()) {
		return true
	}
	if len(w.listed) == len(f.candidates) {
		return false
	}
	mayLose := false
	for i := range f.candidates {
		u := &f.candidates[i]
		if i == 0 || u.userScore != f.candidates[i-1].userScore || !u.sameTo(&f.candidates[i-1].schedulerNode) {
			mayLose = c.mayLose(w.weights[0], u.userScore, ms.mostPoints(&u.schedulerNode))
		}
		if mayLose && !lists(ranked, w, u) {
			return true
		}
	}
	return false
}

// lists tells whether a candidate is among the nodes with a weight.
func lists(ranked []candidate, w weighed, u *candidate) bool {
	return slices.ContainsFunc(w.listed, func(i int) bool { return ranked[i].name == u.name })
}
