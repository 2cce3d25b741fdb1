package scoring

import (
	"cmp"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	corev1 "k8s.io/api/core/v1"
)

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

// companions are the median CPU (millicores) and memory (bytes) requests per GPU
// of the cluster's GPU pods, at least 1 each.
type companions struct {
	cpu, memory int64
}

// When no GPU pod asks for CPU or memory there is nothing to take a median of;
// then one core and 4 GiB are worth the same, the usual ratio of a machine.
var defaultCompanions = companions{cpu: 1000, memory: 4 << 30}
