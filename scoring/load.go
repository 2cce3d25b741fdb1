package scoring

import "slices"

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

// isNegative tells whether less than nothing is left of anything, which cannot be.
func (l load) isNegative() bool {
	negative := func(a amount) bool { return a.value < 0 }
	return l.pods < 0 || l.scoringCPU < 0 || l.scoringMemory < 0 || slices.ContainsFunc(l.requests, negative) ||
		slices.ContainsFunc(l.occupants, negative) || slices.ContainsFunc(l.terminating, negative)
}

// equal tells whether two loads are the same.
func (l load) equal(o load) bool {
	return l.scoringCPU == o.scoringCPU && l.scoringMemory == o.scoringMemory && l.pods == o.pods &&
		slices.Equal(l.requests, o.requests) && slices.Equal(l.occupants, o.occupants) && slices.Equal(l.terminating, o.terminating)
}
