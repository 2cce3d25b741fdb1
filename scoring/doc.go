// Package scoring decides where a GPU pod should go: it keeps an index of nodes
// and pods, filters the nodes that can take the pod, ranks them by bin-packing
// and turns the rank into weights that make the default scheduler follow it.
// Apart from the index's lock it is pure: no I/O, no API calls.
//
// Files in reading order:
//
//   - scoring.go: START HERE, Decide in five named steps
//   - reason.go: why a pod is not steered
//   - demand.go: what a pod asks for
//   - resize.go: whether what a pod takes is what its spec says
//   - amounts.go: quantities as integers
//   - load.go: what is used on a node, as values that never change
//   - pool.go: the nodes for one kind of pods, in packing order
//   - scattered.go: the same nodes in an order without neighbours
//   - signature.go: which pods are of one kind
//   - search.go: going through a pool
//   - feasibility.go: which nodes can take the pod
//   - ranking.go: the order of the candidates
//   - windows.go: the part of a large cluster that the scheduler examines
//   - version.go: which versions of the scheduler count, and what differs between them
//   - model.go: what the scheduler's other plugins will say about a node
//   - strategy.go: how NodeResourcesFit scores one resource
//   - weights.go, chain.go: from order to weights
//   - predict.go: the model of the scheduler, made visible
//   - spread.go: where the scheduler would put pods without us, to compare with
//   - explain.go: everything a decision goes by, for people
//   - nodes.go: how each node is used, for people
//   - index.go: nodes and their usage, from events
//   - charging.go: adding to and taking from a node's usage
//   - node.go: what is kept of a node
//   - images.go: which images are on how many nodes
//   - companions.go: what a GPU's pod usually takes along
//   - reservation.go: who owns a pod's request before it is bound
//   - expected.go: on which node a pod counts that is on its way
//   - peers.go: what other replicas decide at the same time
//   - landing.go: where steered pods went
//   - occupancy.go: how GPUs are spread over nodes, for metrics
//   - unsteered.go: GPU pods that appear without a decision of ours
//   - backoff.go: nodes that refuse GPU pods
//   - late.go: the soft pod affinity for pods that have to wait
//   - ours.go: the parts of a pod that we added earlier
//   - reduced.go: what is read of pods and nodes
//   - feed.go: where the reflectors' objects go
package scoring
