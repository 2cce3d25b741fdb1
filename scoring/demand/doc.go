// Package demand computes what a pod asks for, and what it takes of its node.
//
// Files in reading order:
//
//   - demand.go: START HERE, what a pod asks for
//   - amounts.go: quantities as integers
//   - few.go: how many resources of a pod count
//   - load.go: what pods take of a node, as values that never change
//   - resize.go: whether what a pod takes is what its spec says
package demand
