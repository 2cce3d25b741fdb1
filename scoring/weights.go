package scoring

import (
	"slices"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// weigh gives the ranked nodes their weights, and tells whether a node without one may
// still win.
func (s *Scorer) weigh(v *index.View, q *index.Query, ranked []candidate, f found) (w scheduler.Weights, unlisted bool) {
	m := scheduler.NewModel(&s.cfg.Scheduler, scheduler.Formulas{}, q.Pod, q.Demand, v.Images, v.Nodes)
	m.MaxSoftTaints = f.softTaints
	ms := m.By(s.version.Current())
	c := scheduler.Chain{Cfg: &s.cfg, Points: ms.PointsWhileFilling(len(ranked), func(i int) *scheduler.Feasible { return &ranked[i].Feasible }), Shared: ranked[0].userScore, First: steering.MaxWeight}
	if f.userMax > 0 {
		// Karpenter reads only the heaviest preferred term: it must stay the
		// user's.
		c.First = min(c.First, f.userMax-1)
	}
	if c.First < 1 {
		return scheduler.Weights{}, false
	}
	w = c.Weigh()
	if f.userMax > 0 {
		w.Keep(safeForUser(ms, f, ranked, &c, w))
	}
	if len(w.Weights) == 0 {
		return scheduler.Weights{}, false
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
func safeForUser(ms scheduler.Models, f found, ranked []candidate, c *scheduler.Chain, w scheduler.Weights) int {
	mostByScore := map[int64]int64{}
	for i := range f.candidates {
		x := &f.candidates[i]
		if x.userScore > ranked[0].userScore {
			return 0
		}
		if points := ms.MostPoints(&x.Feasible); x.userScore < ranked[0].userScore {
			if most, ok := mostByScore[x.userScore]; !ok || points > most {
				mostByScore[x.userScore] = points
			}
		}
	}
	a, margin := c.Cfg.Scheduler.PluginWeights.NodeAffinity, c.Cfg.Weights.Margin
	for i, k := range w.Listed {
		total := c.Shared + w.Weights[i]
		for score, most := range mostByScore {
			if a*scheduler.MaxNodeScore+c.Least(k) < a*(scheduler.MaxNodeScore*score/total)+most+margin {
				return i
			}
		}
	}
	return len(w.Listed)
}

// unlistedMayWin tells whether a feasible node without a term may beat the first
// listed one now.
func unlistedMayWin(c *scheduler.Chain, ms scheduler.Models, f found, ranked []candidate, w scheduler.Weights) bool {
	// Candidates that the search did not visit are of pods without preferences.
	if !f.complete && c.MayLose(w.Weights[0], 0, ms[0].Most()) {
		return true
	}
	if len(w.Listed) == len(f.candidates) {
		return false
	}
	mayLose := false
	for i := range f.candidates {
		u := &f.candidates[i]
		if i == 0 || u.userScore != f.candidates[i-1].userScore || !u.SameTo(&f.candidates[i-1].Feasible) {
			mayLose = c.MayLose(w.Weights[0], u.userScore, ms.MostPoints(&u.Feasible))
		}
		if mayLose && !lists(ranked, w, u) {
			return true
		}
	}
	return false
}

// lists tells whether a candidate is among the nodes with a weight.
func lists(ranked []candidate, w scheduler.Weights, u *candidate) bool {
	return slices.ContainsFunc(w.Listed, func(i int) bool { return ranked[i].Name == u.Name })
}
