package nodes

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
)

// Packing is what the packing order depends on, for one GPU resource of a node.
type Packing struct {
	State *State
	// Free is how many GPUs are free, Score is 100*allocated/allocatable.
	Free, Score int64
	// Occupied: a GPU pod runs here or is on its way. Draining: GPU pods are ending
	// here and no other runs; the node may be on its way out, and is no target.
	Occupied, Draining bool
}

// PackingOf returns what the order depends on for one GPU resource of a node.
func PackingOf(s *State, gpu corev1.ResourceName) Packing {
	allocatable, allocated := s.Allocatable.Get(gpu), s.Used.Requests.Get(gpu)
	p := Packing{State: s, Free: allocatable - allocated, Score: OriginScore(allocated, allocatable)}
	p.Occupied = s.Used.Occupants.Get(gpu) > 0
	p.Draining = !p.Occupied && s.Used.Terminating.Get(gpu) > 0
	return p
}

// Merge makes p the tightest of itself and that of another resource of the pod.
func (p *Packing) Merge(other Packing, count int64) {
	p.Free = min(p.Free, other.Free-count)
	p.Score = max(p.Score, other.Score)
	p.Draining = (p.Draining || other.Draining) && !p.Occupied && !other.Occupied
	p.Occupied = p.Occupied || other.Occupied
}

// Key is a node's place in the packing order, lowest first. It is small, since
// a change of a pool's tree copies a hundred of them for its readers.
type Key struct {
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
	return level<<rankBits | min(max(rank, 0), demand.MaxAmount)
}

// Compare orders keys: negative when k comes first.
func (k Key) Compare(o Key) int {
	if k.order != o.order {
		return cmp.Compare(k.order, o.order)
	}
	return cmp.Compare(k.leftover, o.leftover)
}

// KeyFunc returns a node's place in the packing order.
type KeyFunc func(Packing) Key

// NewKey returns the keys of the configured order. Nodes that drain come last.
func NewKey(cfg config.Ranking, unit Companions) KeyFunc {
	strategy := strategies[cfg.Strategy]
	return func(p Packing) Key {
		k := Key{leftover: leftover(p.State, corev1.ResourceCPU, unit.CPU) + leftover(p.State, corev1.ResourceMemory, unit.Memory)}
		k.order = strategy(p, cfg.EmptyNodes) | one(p.Draining)<<drainBit
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

func leftover(s *State, name corev1.ResourceName, unit int64) int64 {
	return (s.Allocatable.Get(name) - s.Used.Requests.Get(name)) * 1024 / unit
}

// strategies are the ranking rules by their configured name.
var strategies = map[config.Strategy]func(Packing, config.EmptyNodes) int64{
	config.StrategyBestFit:       bestFit,
	config.StrategyMostAllocated: mostAllocated,
}

// bestFit prefers nodes in use over empty ones, then the fewest GPUs left over,
// so that a small pod does not break into a large gap.
func bestFit(p Packing, empty config.EmptyNodes) int64 {
	if p.Occupied {
		return orderOf(0, p.Free)
	}
	return orderOf(1, emptyRank(p, empty))
}

// mostAllocated prefers the highest share of allocated GPUs, then nodes in use: both
// in one level, which rises by two for each point of the score that is missing.
func mostAllocated(p Packing, empty config.EmptyNodes) int64 {
	level := 2 * (100 - p.Score)
	if p.Occupied {
		return orderOf(level, 0)
	}
	return orderOf(level+1, emptyRank(p, empty))
}

func emptyRank(p Packing, order config.EmptyNodes) int64 {
	if order == config.LargestFirst {
		return demand.MaxAmount - p.Free
	}
	return p.Free
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// CompareNodes orders nodes of equal rank, in a way that is the same everywhere.
func CompareNodes(a, b *Node) int {
	return cmp.Or(cmp.Compare(a.Hash, b.Hash), cmp.Compare(a.Name, b.Name))
}

// FalseFirst orders by a property of a and b: who lacks it comes first.
func FalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// Companions are the median CPU (millicores) and memory (bytes) requests per GPU
// of the cluster's GPU pods, at least 1 each.
type Companions struct {
	CPU, Memory int64
}

// DefaultCompanions are for when no GPU pod asks for CPU or memory, so that there is
// nothing to take a median of: then one core and 4 GiB are worth the same, the usual ratio of a machine.
var DefaultCompanions = Companions{CPU: 1000, Memory: 4 << 30}
