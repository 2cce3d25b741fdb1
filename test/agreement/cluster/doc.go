// Package cluster makes random clusters and puts them into our index. Package
// agreement gives the same objects to kube-scheduler's code, package binary to
// kube-scheduler itself.
//
// Files in reading order:
//
//   - generator.go: START HERE, the same objects for the same seed
//   - nodes.go: random nodes
//   - pods.go: random pods, running ones and those that ask for GPUs
//   - product.go: our index and scorer, and pods with our decision on them
package cluster
