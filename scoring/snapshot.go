package scoring

import (
	"math/bits"
	"slices"
)

// Snapshot is the immutable view that one decision works on.
type Snapshot struct {
	nodes  []*nodeState
	images imageTable
	// perGPU is what a GPU's pod usually takes along, the unit for left-over CPU
	// and memory.
	perGPU companions
}

// nodeState is a node and what is used on it. It is never changed; an event
// replaces it.
type nodeState struct {
	*node
	used load
}

// load is what one pod, or all pods together, take of a node.
type load struct {
	// requests are the raw requests, as the scheduler's filter counts them.
	requests amounts
	// scoringCPU (millicores) and scoringMemory (bytes) are what its scoring
	// counts.
	scoringCPU, scoringMemory int64
	// pods is how many pods.
	pods int64
	// occupants is, per GPU resource, how many pods make the node an occupied
	// one: not DaemonSet pods, which are everywhere, and not terminating ones,
	// since a draining node is no target.
	occupants amounts
}

// plus returns l + sign*other.
func (l load) plus(sign int64, other load) load {
	return load{
		requests:      l.requests.plus(sign, other.requests),
		scoringCPU:    l.scoringCPU + sign*other.scoringCPU,
		scoringMemory: l.scoringMemory + sign*other.scoringMemory,
		pods:          l.pods + sign*other.pods,
		occupants:     l.occupants.plus(sign, other.occupants),
	}
}

// equal tells whether two loads are the same.
func (l load) equal(o load) bool {
	return l.scoringCPU == o.scoringCPU && l.scoringMemory == o.scoringMemory && l.pods == o.pods &&
		slices.Equal(l.requests, o.requests) && slices.Equal(l.occupants, o.occupants)
}

// without returns the state as if a charge were not there.
func (s *nodeState) without(c charge) *nodeState {
	return &nodeState{node: s.node, used: s.used.plus(-1, c.load)}
}

// imageTable maps an image name to how the scheduler scores it.
type imageTable map[string]imageState

// imageState is the size that the scheduler uses for an image and how many nodes
// have it.
type imageState struct {
	size  int64
	nodes int64
}

// companions are the median CPU (millicores) and memory (bytes) requests per GPU
// of the cluster's GPU pods, at least 1 each.
type companions struct {
	cpu, memory int64
}

// When no GPU pod asks for CPU or memory there is nothing to take a median of;
// then one core and 4 GiB are worth the same, the usual ratio of a machine.
var defaultCompanions = companions{cpu: 1000, memory: 4 << 30}

// histogram counts values in buckets of an eighth of a power of two, which is
// exact enough for a median that serves as a unit, and costs O(1) per change.
type histogram struct {
	buckets [64 * 8]int32
	total   int32
}

func (h *histogram) add(sign int32, value int64) {
	if value > 0 {
		h.buckets[bucketOf(value)] += sign
		h.total += sign
	}
}

// median returns the lower bound of the median's bucket, 0 when empty.
func (h *histogram) median() int64 {
	var below int32
	for b, count := range h.buckets {
		if below += count; below*2 > h.total {
			return bucketValue(b)
		}
	}
	return 0
}

// bucketOf returns 8*log2(value), rounded down: the exponent and the next three
// bits.
func bucketOf(value int64) int {
	exponent := bits.Len64(uint64(value)) - 1
	return exponent*8 + int(uint64(value)<<3>>exponent&7)
}

func bucketValue(bucket int) int64 {
	exponent := bucket / 8
	return int64(uint64(8+bucket%8) << exponent >> 3)
}
