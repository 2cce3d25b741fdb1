// Package nodes is what is known of a node, whether it can take a pod, and its place in
// the packing order. Everything here is a value that never changes.
//
// Files in reading order:
//
//   - node.go: START HERE, what is kept of a node
//   - state.go: a node and what is used on it
//   - filter.go: which nodes can take a pod
//   - constraints.go: node selector, required affinity and tolerations as a key
//   - cost.go: how many constraints a pod may have
//   - preferences.go: the pod's own preferred terms
//   - packing.go: the packing order
//   - use.go: how a node is used, for people
//   - occupancy.go: how GPUs are spread over nodes, for metrics
//   - texts.go: texts that many objects have in common
//   - recent.go: a map of what was asked for lately, bounded in bytes
package nodes
