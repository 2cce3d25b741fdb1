package pool

import (
	"math/bits"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

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

// PerGPU counts what GPU pods take along, per GPU. Reservations do not count: a pod's own
// would change its second decision.
type PerGPU struct {
	GPUs        config.Resources
	cpu, memory histogram
}

// Count adds (sign 1) or takes away (-1) what a pod takes.
func (c *PerGPU) Count(sign int32, l demand.Load) {
	var gpus int64
	for _, a := range l.Requests {
		if c.GPUs.IsGPU(string(a.Name)) {
			gpus += a.Value
		}
	}
	if gpus > 0 {
		c.cpu.add(sign, l.Requests.Get(corev1.ResourceCPU)/gpus)
		c.memory.add(sign, l.Requests.Get(corev1.ResourceMemory)/gpus)
	}
}

// Median returns what a GPU's pod usually takes along.
func (c *PerGPU) Median() nodes.Companions {
	m := nodes.Companions{CPU: c.cpu.median(), Memory: c.memory.median()}
	if m.CPU == 0 || m.Memory == 0 {
		return nodes.DefaultCompanions
	}
	return m
}
