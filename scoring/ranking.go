package scoring

import (
	"cmp"
	"slices"

	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

// rank returns the best candidates in order, as many as there may be terms, and
// in large clusters the tail. If the user has preferences, only the best class of
// nodes by them is listed. A pod that is decided about again keeps the node it has
// reserved, if that is still in the best class.
func (s *Scorer) rank(f found, v *index.View) []candidate {
	if !f.complete { // the search went by the order, among nodes of one class
		return f.candidates
	}
	var own *candidate
	if v.OwnState != nil && f.candidates[0].State == v.OwnState {
		own = &f.candidates[0] // the search begins with it
	}
	b := best{n: s.cfg.Weights.MaxTerms, order: compareCandidates}
	b.top = make([]candidate, 0, b.n)
	for i := range f.candidates {
		b.add(&f.candidates[i])
	}
	first := b.top[0]
	if own != nil && sameClass(own, &first) {
		b.order = func(a, c *candidate) int {
			return cmp.Or(nodes.FalseFirst(a.Name != own.Name, c.Name != own.Name), compareCandidates(a, c))
		}
		b.top = slices.DeleteFunc(b.top, func(c candidate) bool { return c.Name == own.Name })
		b.add(own)
	}
	ranked := slices.Concat(b.top, s.tail(f, v, b.top))
	if f.userMax > 0 {
		ranked = slices.DeleteFunc(ranked, func(c candidate) bool { return !sameClass(&c, &first) })
	}
	return ranked
}

// sameClass tells whether neither the scheduler, by PreferNoSchedule taints, nor
// the user, by preferences, puts one of the nodes before the other.
func sameClass(a, b *candidate) bool {
	return a.SoftTaints == b.SoftTaints && a.userScore == b.userScore
}

// candidate is a node that can take the pod, with what its rank depends on.
type candidate struct {
	scheduler.Feasible
	// userScore is the sum of the user's own preferred weights that match.
	userScore int64
	// key is the node's place in the packing order.
	key nodes.Key
	// score is 100*allocated/allocatable before placement, of the tightest
	// requested GPU resource, 0 to 100.
	score int64
	// freeAfter is the number of GPUs left after placement, of the tightest
	// requested GPU resource.
	freeAfter int64
}

// newCandidate computes what ranking needs to know of a feasible node.
func newCandidate(v *index.View, n *nodes.State, f *nodes.Filter, user *nodeaffinity.PreferredSchedulingTerms) candidate {
	c := candidate{Feasible: scheduler.Feasible{State: n, SoftTaints: f.SoftTaints(n.Node)}, freeAfter: demand.MaxAmount}
	if user != nil {
		c.userScore = user.Score(n.Object)
	}
	tightest := nodes.Packing{Free: demand.MaxAmount, State: n}
	for _, g := range f.Demand.GPUs {
		p := nodes.PackingOf(n, g.Name)
		c.freeAfter = min(c.freeAfter, p.Free-g.Count)
		tightest.Merge(p, g.Count)
	}
	c.score, c.key = tightest.Score, v.Key(tightest)
	return c
}

// compare orders candidates: negative when a is to be filled before b.
type compare func(a, b *candidate) int

// compareCandidates puts first what no preference of ours can or may overturn: the
// scheduler gives a node without PreferNoSchedule taints up to 300 points more
// (normalised by the node with the most of them), and the user's own preferences
// are theirs.
func compareCandidates(a, b *candidate) int {
	switch {
	case a.SoftTaints != b.SoftTaints:
		return cmp.Compare(a.SoftTaints, b.SoftTaints)
	case a.userScore != b.userScore:
		return cmp.Compare(b.userScore, a.userScore)
	default:
		return a.entry().Compare(b.entry())
	}
}

// entry is the candidate's place in the packing order.
func (c *candidate) entry() pool.Entry { return pool.Entry{Key: c.key, Hash: c.Hash, State: c.State} }

// best keeps the first n candidates of the order, by insertion: n is small and
// most candidates are not among them.
type best struct {
	n     int
	order compare
	top   []candidate
}

func (b *best) add(c *candidate) {
	if len(b.top) == b.n && b.order(c, &b.top[b.n-1]) >= 0 {
		return
	}
	if len(b.top) < b.n {
		b.top = append(b.top, candidate{})
	}
	i := len(b.top) - 1
	for ; i > 0 && b.order(c, &b.top[i-1]) < 0; i-- {
		b.top[i] = b.top[i-1]
	}
	b.top[i] = *c
}
