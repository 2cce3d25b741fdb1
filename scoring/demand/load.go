package demand

import "slices"

// Load is what one pod, or all pods together, take of a node.
type Load struct {
	// Requests are the raw requests, as the scheduler's filter counts them.
	Requests Amounts
	// ScoringCPU (millicores) and ScoringMemory (bytes) are what its scoring
	// counts.
	ScoringCPU, ScoringMemory int64
	// Pods is how many pods.
	Pods int64
	// Occupants is, per GPU resource, how many pods make the node an occupied
	// one: not DaemonSet pods, which are everywhere, and not terminating ones,
	// which are counted apart.
	Occupants, Terminating Amounts
}

// Plus returns l + sign*other.
func (l Load) Plus(sign int64, other Load) Load {
	return Load{
		Requests:      l.Requests.plus(sign, other.Requests),
		ScoringCPU:    l.ScoringCPU + sign*other.ScoringCPU,
		ScoringMemory: l.ScoringMemory + sign*other.ScoringMemory,
		Pods:          l.Pods + sign*other.Pods,
		Occupants:     l.Occupants.plus(sign, other.Occupants),
		Terminating:   l.Terminating.plus(sign, other.Terminating),
	}
}

// IsNegative tells whether less than nothing is left of anything, which cannot be.
func (l Load) IsNegative() bool {
	negative := func(a Amount) bool { return a.Value < 0 }
	return l.Pods < 0 || l.ScoringCPU < 0 || l.ScoringMemory < 0 || slices.ContainsFunc(l.Requests, negative) ||
		slices.ContainsFunc(l.Occupants, negative) || slices.ContainsFunc(l.Terminating, negative)
}

// Equal tells whether two loads are the same.
func (l Load) Equal(o Load) bool {
	return l.ScoringCPU == o.ScoringCPU && l.ScoringMemory == o.ScoringMemory && l.Pods == o.Pods &&
		slices.Equal(l.Requests, o.Requests) && slices.Equal(l.Occupants, o.Occupants) && slices.Equal(l.Terminating, o.Terminating)
}
