// Package scheduler is the model of kube-scheduler: what its plugins give a node, which
// nodes it examines, and which weights make it fill nodes in an order.
//
// Files in reading order:
//
//   - chain.go: START HERE, from an order of nodes to weights
//   - model.go: what the plugins other than NodeAffinity give a node
//   - strategy.go: how NodeResourcesFit scores one resource
//   - models.go: the model by the formulas of several versions
//   - points.go: the model made visible, plugin by plugin
//   - version.go: which versions of the scheduler count, and what differs between them
//   - sampling.go: which nodes it examines, and in which order
//   - images.go: the images on nodes, as ImageLocality counts them
package scheduler
