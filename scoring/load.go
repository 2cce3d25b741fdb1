package scoring

import "slices"

// nodeState is a node and what is used on it. It is never changed; an event
// replaces it.
type nodeState struct {
	*node
	used load
}

// load is what one pod, or all pods together, take of a node.
type load struct {
	// requests are the raw requests, as the scheduler's filter counts them.
	requests amounts
	// scoringCPU (millicores) and scoringMemory (bytes) are what its scoring
	// counts.
	scoringCPU, scoringMemory int64
	// pods is how many pods.
	pods int64
	// occupants is, per GPU resource, how many pods make the node an occupied
	// one: not DaemonSet pods, which are everywhere, and not terminating ones,
	// which are counted apart.
	occupants, terminating amounts
}

// plus returns l + sign*other.
func (l load) plus(sign int64, other load) load {
	return load{
		requests:      l.requests.plus(sign, other.requests),
		scoringCPU:    l.scoringCPU + sign*other.scoringCPU,
		scoringMemory: l.scoringMemory + sign*other.scoringMemory,
		pods:          l.pods + sign*other.pods,
		occupants:     l.occupants.plus(sign, other.occupants),
		terminating:   l.terminating.plus(sign, other.terminating),
	}
}

// equal tells whether two loads are the same.
func (l load) equal(o load) bool {
	return l.scoringCPU == o.scoringCPU && l.scoringMemory == o.scoringMemory && l.pods == o.pods &&
		slices.Equal(l.requests, o.requests) && slices.Equal(l.occupants, o.occupants) && slices.Equal(l.terminating, o.terminating)
}

// without returns the state as if a charge were not there.
func (s *nodeState) without(c charge) *nodeState {
	return &nodeState{node: s.node, used: s.used.plus(-1, c.load)}
}
