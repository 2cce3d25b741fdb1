package pool

import "github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"

const (
	// bytesPerNode is what a node takes in a pool: an entry and a place in trees that are
	// half full.
	bytesPerNode = 112
	// copiesOfConstraints: a pool has those of its pods as they are, compiled, and as a part
	// of its kind.
	copiesOfConstraints = 3
)

// MaxBytes is what all pools together take at most in a cluster of so many nodes.
func MaxBytes(nodeCount int) int {
	return MaxPools * (nodeCount*bytesPerNode + copiesOfConstraints*nodes.MaxConstraintBytes)
}
