package pool

// Bounds, for the tests.
const (
	UnitAge = unitAge
	IdleAge = idleAge

	AlwaysAwake = alwaysAwake
	RestAge     = restAge
)
