// Package workload describes what the packing benchmark replays: nodes and pods
// with times of arrival and departure. Everything is computed from a name and a
// seed, without a clock and without a cluster.
//
// Files in reading order:
//
//   - workload.go: START HERE, the types
//   - uniform.go: equal nodes, one or mixed pod sizes
//   - churn.go: a generated cluster of openb's shape; pods come and go
//   - trace.go, tracechurn.go: the openb trace itself, from a folder of the user
//   - tracemix.go: the trace with more GPUs per pod
//   - bound.go: the fewest nodes and GPUs that can hold the pods
package workload
