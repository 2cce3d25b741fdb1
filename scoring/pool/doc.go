// Package pool keeps, for each kind of pods, the nodes that such pods may go to in packing
// order, so that a decision reads the first few and not all. Its types have no lock: the
// index calls them under its own, and hands views of them to readers.
//
// Files in reading order:
//
//   - pools.go: START HERE, the pools of the kinds seen lately
//   - shares.go: how many of them a namespace has when there is no more room
//   - rest.go: which of them follow every event
//   - pool.go: one pool
//   - make.go: how it is made without keeping others waiting
//   - sorted.go: its nodes in order, in trees or lists
//   - scattered.go: the same nodes in an order without neighbours
//   - size.go: how much they take
//   - latest.go: the states of all nodes as they are now, by slot
//   - companions.go: what a GPU's pod usually takes along
package pool
