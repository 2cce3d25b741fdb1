package scoring

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// rank returns the best candidates in order, as many as there may be terms, and
// in large clusters the tail. If the user has preferences, only the best class of
// nodes by them is listed. A pod that is decided about again keeps the node it has
// reserved, if that is still in the best class.
func (s *Scorer) rank(f found, v view) []candidate {
	b := best{n: s.cfg.Weights.MaxTerms, order: s.order}
	var own *candidate
	for i := range f.candidates {
		c := &f.candidates[i]
		b.add(c)
		if v.own != nil && c.object.Name == v.own.node {
			own = c
		}
	}
	first := b.top[0]
	if own != nil && sameClass(own, &first) {
		b.order = func(a, c *candidate) int {
			return cmp.Or(falseFirst(a.object.Name != own.object.Name, c.object.Name != own.object.Name), s.order(a, c))
		}
		b.top = slices.DeleteFunc(b.top, func(c candidate) bool { return c.object.Name == own.object.Name })
		b.add(own)
	}
	ranked := append(b.top, s.tail(f, v, b.top)...)
	if f.userMax > 0 {
		ranked = slices.DeleteFunc(ranked, func(c candidate) bool { return !sameClass(&c, &first) })
	}
	return ranked
}

// sameClass tells whether neither the scheduler, by PreferNoSchedule taints, nor
// the user, by preferences, puts one of the nodes before the other.
func sameClass(a, b *candidate) bool {
	return a.softTaints == b.softTaints && a.userScore == b.userScore
}

// candidate is a node that can take the pod, with what its rank depends on.
type candidate struct {
	*nodeState
	// index is the node's place in the snapshot.
	index int
	// softTaints is the number of PreferNoSchedule taints not tolerated.
	softTaints int64
	// userScore is the sum of the user's own preferred weights that match.
	userScore int64
	// occupied: a GPU pod of a requested resource runs here or is on its way.
	occupied bool
	// draining: GPU pods are ending here and no other runs. The node may be on
	// its way out, and is no target.
	draining bool
	// score is 100*allocated/allocatable before placement, of the tightest
	// requested GPU resource, 0 to 100.
	score int64
	// freeAfter is the number of GPUs left after placement, of the tightest
	// requested GPU resource.
	freeAfter int64
	// leftover is CPU plus memory left after placement, in 1/1024 of what a GPU's
	// pod usually takes along.
	leftover int64
}

// newCandidate computes what ranking needs to know of a feasible node.
func newCandidate(s *nodeState, f *podFilter, user *nodeaffinity.PreferredSchedulingTerms, unit companions) candidate {
	c := candidate{
		nodeState:  s,
		softTaints: f.softTaints(s.object.Spec.Taints),
		freeAfter:  maxAmount,
		leftover: leftover(s, f.demand, corev1.ResourceCPU, unit.cpu) +
			leftover(s, f.demand, corev1.ResourceMemory, unit.memory),
	}
	if user != nil {
		c.userScore = user.Score(s.object)
	}
	for _, g := range f.demand.GPUs {
		allocatable, allocated := s.allocatable.get(g.Name), s.used.requests.get(g.Name)
		c.score = max(c.score, OriginScore(allocated, allocatable))
		c.freeAfter = min(c.freeAfter, allocatable-allocated-g.Count)
		c.occupied = c.occupied || s.used.occupants.get(g.Name) > 0
		c.draining = c.draining || s.used.terminating.get(g.Name) > 0
	}
	c.draining = c.draining && !c.occupied
	return c
}

// OriginScore is the bin-packing score of the scheduler plugin this product
// descends from: 100 * allocated / allocatable, before placement, 0 to 100. A
// node that offers more than it has (a GPU went unhealthy) scores 100, one that
// offers none scores 0.
func OriginScore(allocated, allocatable int64) int64 {
	if allocatable <= 0 {
		return 0
	}
	return 100 * min(max(allocated, 0), allocatable) / allocatable
}

func leftover(s *nodeState, d *Demand, name corev1.ResourceName, unit int64) int64 {
	left := s.allocatable.get(name) - s.used.requests.get(name) - d.requests.get(name)
	return left * 1024 / unit
}

// compare orders candidates: negative when a is to be filled before b.
type compare func(a, b *candidate) int

// strategies are the ranking rules by their configured name.
var strategies = map[config.Strategy]func(config.EmptyNodes) compare{
	config.StrategyBestFit:       bestFit,
	config.StrategyMostAllocated: mostAllocated,
}

// newCompare returns the configured order. What no preference of ours can or may
// overturn comes first: the scheduler gives a node without PreferNoSchedule
// taints up to 300 points more (normalised by the node with the most of them), and
// the user's own preferences are theirs.
func newCompare(cfg config.Ranking) compare {
	packing := strategies[cfg.Strategy](cfg.EmptyNodes)
	return func(a, b *candidate) int {
		return cmp.Or(
			cmp.Compare(a.softTaints, b.softTaints),
			cmp.Compare(b.userScore, a.userScore),
			falseFirst(a.draining, b.draining),
			packing(a, b),
			cmp.Compare(a.leftover, b.leftover),
			cmp.Compare(a.hash, b.hash),
			cmp.Compare(a.object.Name, b.object.Name),
		)
	}
}

// bestFit prefers nodes in use over empty ones, then the fewest GPUs left over,
// so that a small pod does not break into a large gap.
func bestFit(empty config.EmptyNodes) compare {
	return func(a, b *candidate) int {
		if a.occupied != b.occupied {
			return falseFirst(b.occupied, a.occupied)
		}
		if !a.occupied {
			return compareEmpty(empty, a, b)
		}
		return cmp.Compare(a.freeAfter, b.freeAfter)
	}
}

// mostAllocated prefers the highest share of allocated GPUs.
func mostAllocated(empty config.EmptyNodes) compare {
	return func(a, b *candidate) int {
		if !a.occupied && !b.occupied {
			return cmp.Or(cmp.Compare(b.score, a.score), compareEmpty(empty, a, b))
		}
		return cmp.Compare(b.score, a.score)
	}
}

// falseFirst orders by a property of a and b: who lacks it comes first.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func compareEmpty(order config.EmptyNodes, a, b *candidate) int {
	if order == config.LargestFirst {
		return cmp.Compare(b.freeAfter, a.freeAfter)
	}
	return cmp.Compare(a.freeAfter, b.freeAfter)
}

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
