package pool

// Bounds, for the tests.
const (
	MaxPools = maxPools
	UnitAge  = unitAge
)
