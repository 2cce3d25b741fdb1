package pool

import (
	"slices"
	"sync/atomic"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// Latest are the states of all nodes by slot. Unlike all else that readers have
// of the index it does not stay as it is: they find what a node has room for now, which
// is as good or better.
type Latest []atomic.Pointer[nodes.State]

// Set makes s the state in a slot, nil for none, and returns the states to go on with.
func (l Latest) Set(slot int, s *nodes.State) Latest {
	if slot >= len(l) {
		grown := make(Latest, 2*slot+1)
		for i := range l {
			grown[i].Store(l[i].Load())
		}
		l = grown
	}
	l[slot].Store(s)
	return l
}

// AppendTo appends the states of all slots, nil for those without a node. Under the lock
// under which they are set they are those of one moment.
func (l Latest) AppendTo(states []*nodes.State) []*nodes.State {
	states = slices.Grow(states, len(l))
	for i := range l {
		states = append(states, l[i].Load())
	}
	return states
}

// Of returns the state of a place's node, nil if the node is gone or was changed.
func (l Latest) Of(p Place) *nodes.State {
	if int(p.Slot) >= len(l) {
		return nil
	}
	if s := l[p.Slot].Load(); s != nil && s.Node == p.node {
		return s
	}
	return nil
}
