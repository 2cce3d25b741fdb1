// Package cluster generates the clusters that the benchmarks of speed run on, by
// shape and size.
//
// Files in reading order:
//
//   - shape.go: kinds of clusters, and the pod that comes to each
//   - realistic.go, pods.go: nodes and pods as large as those of a production cluster
package cluster
