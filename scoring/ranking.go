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
	if !f.complete { // the search went by the order, among nodes of one class
		return f.candidates
	}
	var own *candidate
	if v.ownState != nil && f.candidates[0].nodeState == v.ownState {
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
			return cmp.Or(falseFirst(a.name != own.name, c.name != own.name), compareCandidates(a, c))
		}
		b.top = slices.DeleteFunc(b.top, func(c candidate) bool { return c.name == own.name })
		b.add(own)
	}
	ranked := slices.Concat(b.top, s.tail(f, &v, b.top))
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
	// softTaints is the number of PreferNoSchedule taints not tolerated.
	softTaints int64
	// userScore is the sum of the user's own preferred weights that match.
	userScore int64
	// key is the node's place in the packing order.
	key packingKey
	// score is 100*allocated/allocatable before placement, of the tightest
	// requested GPU resource, 0 to 100.
	score int64
	// freeAfter is the number of GPUs left after placement, of the tightest
	// requested GPU resource.
	freeAfter int64
}

// newCandidate computes what ranking needs to know of a feasible node.
func (v *view) newCandidate(n *nodeState, f *podFilter, user *nodeaffinity.PreferredSchedulingTerms) candidate {
	c := candidate{nodeState: n, softTaints: f.softTaints(n.node), freeAfter: maxAmount}
	if user != nil {
		c.userScore = user.Score(n.object)
	}
	tightest := packing{free: maxAmount, state: n}
	for _, g := range f.demand.GPUs {
		p := packingOf(n, g.Name)
		c.freeAfter = min(c.freeAfter, p.free-g.Count)
		tightest.merge(p, g.Count)
	}
	c.score, c.key = tightest.score, v.key(tightest)
	return c
}

// packing is what the packing order depends on, for one GPU resource of a node.
type packing struct {
	state *nodeState
	// free is how many GPUs are free, score is 100*allocated/allocatable.
	free, score int64
	// occupied: a GPU pod runs here or is on its way. draining: GPU pods are ending
	// here and no other runs; the node may be on its way out, and is no target.
	occupied, draining bool
}

func packingOf(s *nodeState, gpu corev1.ResourceName) packing {
	allocatable, allocated := s.allocatable.get(gpu), s.used.requests.get(gpu)
	p := packing{state: s, free: allocatable - allocated, score: OriginScore(allocated, allocatable)}
	p.occupied = s.used.occupants.get(gpu) > 0
	p.draining = !p.occupied && s.used.terminating.get(gpu) > 0
	return p
}

// merge makes p the tightest of itself and that of another resource of the pod.
func (p *packing) merge(other packing, count int64) {
	p.free = min(p.free, other.free-count)
	p.score = max(p.score, other.score)
	p.draining = (p.draining || other.draining) && !p.occupied && !other.occupied
	p.occupied = p.occupied || other.occupied
}

// packingKey is a node's place in the packing order, lowest first. It is small, since
// a change of a pool's tree copies a hundred of them for its readers.
type packingKey struct {
	// order is what the strategy says, and above all whether the node drains.
	order int64
	// leftover is free CPU plus memory, in 1/1024 of what a GPU's pod usually takes
	// along.
	leftover int64
}

// An order, from the lowest bit: the strategy's rank within a level, 0 to maxAmount;
// its level, 0 to 201; one bit that is set for nodes that drain.
const (
	rankBits = 51
	drainBit = rankBits + 8
)

// orderOf puts a level and a rank within it into one number.
func orderOf(level, rank int64) int64 {
	return level<<rankBits | min(max(rank, 0), maxAmount)
}

func (k packingKey) compare(o packingKey) int {
	if k.order != o.order {
		return cmp.Compare(k.order, o.order)
	}
	return cmp.Compare(k.leftover, o.leftover)
}

// keyFunc returns a node's place in the packing order.
type keyFunc func(packing) packingKey

// newKey returns the keys of the configured order. Nodes that drain come last.
func newKey(cfg config.Ranking, unit companions) keyFunc {
	strategy := strategies[cfg.Strategy]
	return func(p packing) packingKey {
		k := packingKey{leftover: leftover(p.state, corev1.ResourceCPU, unit.cpu) + leftover(p.state, corev1.ResourceMemory, unit.memory)}
		k.order = strategy(p, cfg.EmptyNodes) | one(p.draining)<<drainBit
		return k
	}
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

func leftover(s *nodeState, name corev1.ResourceName, unit int64) int64 {
	return (s.allocatable.get(name) - s.used.requests.get(name)) * 1024 / unit
}

// strategies are the ranking rules by their configured name.
var strategies = map[config.Strategy]func(packing, config.EmptyNodes) int64{
	config.StrategyBestFit:       bestFit,
	config.StrategyMostAllocated: mostAllocated,
}

// bestFit prefers nodes in use over empty ones, then the fewest GPUs left over,
// so that a small pod does not break into a large gap.
func bestFit(p packing, empty config.EmptyNodes) int64 {
	if p.occupied {
		return orderOf(0, p.free)
	}
	return orderOf(1, emptyRank(p, empty))
}

// mostAllocated prefers the highest share of allocated GPUs, then nodes in use: both
// in one level, which rises by two for each point of the score that is missing.
func mostAllocated(p packing, empty config.EmptyNodes) int64 {
	level := 2 * (100 - p.score)
	if p.occupied {
		return orderOf(level, 0)
	}
	return orderOf(level+1, emptyRank(p, empty))
}

func emptyRank(p packing, order config.EmptyNodes) int64 {
	if order == config.LargestFirst {
		return maxAmount - p.free
	}
	return p.free
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// compare orders candidates: negative when a is to be filled before b.
type compare func(a, b *candidate) int

// compareCandidates puts first what no preference of ours can or may overturn: the
// scheduler gives a node without PreferNoSchedule taints up to 300 points more
// (normalised by the node with the most of them), and the user's own preferences
// are theirs.
func compareCandidates(a, b *candidate) int {
	switch {
	case a.softTaints != b.softTaints:
		return cmp.Compare(a.softTaints, b.softTaints)
	case a.userScore != b.userScore:
		return cmp.Compare(b.userScore, a.userScore)
	default:
		return a.entry().compare(b.entry())
	}
}

// entry is the candidate's place in the packing order.
func (c *candidate) entry() entry { return entry{key: c.key, hash: c.hash, state: c.nodeState} }

// compareNodes orders nodes of equal rank, in a way that is the same everywhere.
func compareNodes(a, b *node) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.name, b.name))
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
