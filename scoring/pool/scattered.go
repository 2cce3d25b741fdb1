package pool

import (
	"cmp"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// The tail of a large cluster's list must reach all parts of the scheduler's node
// order. So a pool holds its nodes a second time, in an order that has nothing to do
// with that one. A search goes through it from some place on and takes the first node
// of each part that it comes across.

// Class is what makes a node better or worse for the tail, best first. Empty nodes are
// one class, whatever their size: whoever finds all better nodes taken opens one, and a
// large one takes many pods on their way, where several small ones stay partly used
// (seen with small ones first on openb's nodes).
type Class uint8

const (
	classOccupied Class = iota
	classEmpty
	classDraining
	// Classes is how many there are.
	Classes
)

func classOf(p nodes.Packing) Class {
	switch {
	case p.Draining:
		return classDraining
	case p.Occupied:
		return classOccupied
	default:
		return classEmpty
	}
}

// Place is a node's place in the scattered order of a pool: by class, in it by hash.
// It says which node it is by the slot, so that a search looks only at the nodes that
// it takes. It does not have the node's state, or a tree of places would change, and
// be copied for its readers, with every pod: see latestStates.
type Place struct {
	hash  uint64
	node  *nodes.Node
	Slot  int32
	Class Class
}

// compare orders places; one without a node comes before all with its hash.
func (p Place) compare(o Place) int {
	switch {
	case p.Class != o.Class:
		return cmp.Compare(p.Class, o.Class)
	case p.hash != o.hash:
		return cmp.Compare(p.hash, o.hash)
	case p.node == nil || o.node == nil:
		return nodes.FalseFirst(p.node != nil, o.node != nil)
	default:
		return cmp.Compare(p.node.Name, o.node.Name)
	}
}

// scatter multiplies hashes, so that nodes next to each other in their order begin at
// places far apart (2^64 divided by the golden ratio, Knuth's multiplicative hashing).
const scatter = 0x9E3779B97F4A7C15

// PlaceFrom is a place in a class that follows from a node.
func PlaceFrom(c Class, n *nodes.Node) Place { return Place{Class: c, hash: n.Hash * scatter} }
