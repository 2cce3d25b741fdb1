package scoring

import (
	"cmp"
	"math"

	"github.com/google/btree"
)

// The tail of a large cluster's list must reach all parts of the scheduler's node
// order. So a pool holds its nodes a second time, in an order that has nothing to do
// with that one. A search goes through it from some place on and takes the first node
// of each part that it comes across.

// class is what makes a node better or worse for the tail, best first.
type class struct {
	use use
	// order is that of empty nodes, by size; 0 for others.
	order int64
}

// use is what a node's GPUs are in use for.
type use int

const (
	useOccupied use = iota
	useEmpty
	useDraining
)

func (c class) compare(o class) int {
	if c.use != o.use {
		return cmp.Compare(c.use, o.use)
	}
	return cmp.Compare(c.order, o.order)
}

// classOf returns the class of a node with that place in the packing order. Pods that
// find all better nodes taken open an empty one of the tail, so it matters which: a
// large one would be broken into by small pods.
func classOf(p packing, k packingKey) class {
	switch {
	case p.draining:
		return class{use: useDraining}
	case p.occupied:
		return class{use: useOccupied}
	default:
		return class{use: useEmpty, order: k.order[2]}
	}
}

// nextClass returns the first class from c on that has nodes.
func nextClass(scattered *btree.BTreeG[place], c class) (next class, ok bool) {
	scattered.AscendGreaterOrEqual(place{class: c}, func(p place) bool {
		next, ok = p.class, true
		return false
	})
	return next, ok
}

// place is a node's place in the scattered order of a pool: by class, in it by hash.
// It says which node it is by the slot, so that a search looks only at the nodes that
// it takes.
type place struct {
	hash  uint64
	state *nodeState
	slot  int
	class class
}

// firstClass is before all others.
var firstClass = class{order: math.MinInt64}

// after is before all classes that come after c.
func (c class) after() class { return class{use: c.use, order: c.order + 1} }

// compare orders places; one without a node comes before all with its hash.
func (p place) compare(o place) int {
	switch {
	case p.class != o.class:
		return p.class.compare(o.class)
	case p.hash != o.hash:
		return cmp.Compare(p.hash, o.hash)
	case p.state == nil || o.state == nil:
		return falseFirst(p.state != nil, o.state != nil)
	default:
		return cmp.Compare(p.state.object.Name, o.state.object.Name)
	}
}

// scatter multiplies hashes, so that nodes next to each other in their order begin at
// places far apart (2^64 divided by the golden ratio, Knuth's multiplicative hashing).
const scatter = 0x9E3779B97F4A7C15

// placeFrom is a place in a class that follows from a node.
func placeFrom(c class, n *node) place { return place{class: c, hash: n.hash * scatter} }
