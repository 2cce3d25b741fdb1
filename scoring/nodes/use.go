package nodes

// Use is how the GPUs of one node are used.
type Use struct {
	// Name is the node's metadata.name.
	Name string
	// GPUs are the configured GPU resources that the node offers, sorted by name.
	GPUs []ResourceUse
	// Pods is how many pods hold GPUs here or are expected, DaemonSet pods and
	// ending ones not counted.
	Pods int64
	// InFlight is how many GPUs are held for pods that were admitted but are not on
	// the node yet, of all the node's GPU resources.
	InFlight int64
	// Out says why no pod is steered to the node whatever it asks for, and is
	// NodeFeasible when nothing keeps it out. Backoff may be of one of its GPU resources
	// only.
	Out Reason
}
