package scoring

import (
	"math/bits"

	corev1 "k8s.io/api/core/v1"
)

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

func companionsOf(cpu, memory *histogram) companions {
	c := companions{cpu: cpu.median(), memory: memory.median()}
	if c.cpu == 0 || c.memory == 0 {
		return defaultCompanions
	}
	return c
}

// countCompanions counts what a GPU pod takes along, per GPU. Reservations do not
// count: a pod's own would change its second decision. Call under lock.
func (ix *Index) countCompanions(sign int32, l load) {
	var gpus int64
	for _, a := range l.requests {
		if ix.cfg.Resources.IsGPU(string(a.name)) {
			gpus += a.value
		}
	}
	if gpus > 0 {
		ix.cpuPerGPU.add(sign, l.requests.get(corev1.ResourceCPU)/gpus)
		ix.memoryPerGPU.add(sign, l.requests.get(corev1.ResourceMemory)/gpus)
	}
}
