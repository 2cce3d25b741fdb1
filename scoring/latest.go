package scoring

import "sync/atomic"

// latestStates are the states of all nodes by slot. Unlike all else that readers have
// of the index it does not stay as it is: they find what a node has room for now, which
// is as good or better.
type latestStates []atomic.Pointer[nodeState]

// set makes s the state in a slot, nil for none, and returns the states to go on with.
func (l latestStates) set(slot int, s *nodeState) latestStates {
	if slot >= len(l) {
		grown := make(latestStates, 2*slot+1)
		for i := range l {
			grown[i].Store(l[i].Load())
		}
		l = grown
	}
	l[slot].Store(s)
	return l
}

// of returns the state of a place's node, nil if the node is gone or was changed.
func (l latestStates) of(p place) *nodeState {
	if int(p.slot) >= len(l) {
		return nil
	}
	if s := l[p.slot].Load(); s != nil && s.node == p.node {
		return s
	}
	return nil
}
