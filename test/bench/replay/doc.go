// Package replay plays a workload on the system in charge and measures where the
// API server says that its pods went.
//
// Files in reading order:
//
//   - replay.go: START HERE, one run from empty cluster to empty cluster
//   - objects.go: nodes, pods and their owners
//   - create.go: pods created by kube-controller-manager or by us
//   - play.go: the arrivals: one by one, in a burst, at a rate
//   - events.go: pods that come and leave at their times
//   - observer.go: what the watch of the pods says
//   - measure.go: occupied nodes, GPUs on them, free GPUs on empty ones
package replay
