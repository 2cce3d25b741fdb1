package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

const (
	// maxPrefixed is how many resource names that match a configured prefix get
	// metrics of their own. NVIDIA's GPUs have some 20 MIG profiles each.
	maxPrefixed = 32
	// otherResource stands for the names above that.
	otherResource = "other"
)

var (
	gpuNodes = prometheus.NewDesc("gpu_binpacker_gpu_nodes",
		"Nodes that offer the GPU resource, by state: empty (no pod with such GPUs there or expected, those of DaemonSets and terminating ones not counted), partial, full. Every replica shows the whole cluster.",
		[]string{"resource", "state"}, nil)
	gpusAllocatable = prometheus.NewDesc("gpu_binpacker_gpus_allocatable",
		"GPUs that nodes offer. Every replica shows the whole cluster.", []string{"resource"}, nil)
	gpusAllocated = prometheus.NewDesc("gpu_binpacker_gpus_allocated",
		"GPUs that pods hold, or that are kept for pods on their way to a node. Every replica shows the whole cluster.", []string{"resource"}, nil)
	gpusFree = prometheus.NewDesc("gpu_binpacker_gpus_free",
		"GPUs that are free on nodes that take pods, by what the node is: occupied or empty. Every replica shows the whole cluster.", []string{"resource", "on"}, nil)
	largestFitting = prometheus.NewDesc("gpu_binpacker_largest_fitting_request",
		"The most GPUs free on one node that takes pods: no pod that asks for more can be placed. Every replica shows the whole cluster.", []string{"resource"}, nil)
)

// occupancyCollector shows how GPUs are spread over nodes, from the index's state
// when it is asked.
type occupancyCollector struct {
	occupancy func() []nodes.Occupancy
}

// Describe implements prometheus.Collector.
func (occupancyCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{gpuNodes, gpusAllocatable, gpusAllocated, gpusFree, largestFitting} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c occupancyCollector) Collect(metrics chan<- prometheus.Metric) {
	for _, o := range bounded(c.occupancy()) {
		gauge := func(desc *prometheus.Desc, value int64, labels ...string) {
			metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), append([]string{o.Resource}, labels...)...)
		}
		gauge(gpuNodes, int64(o.EmptyNodes), "empty")
		gauge(gpuNodes, int64(o.PartialNodes), "partial")
		gauge(gpuNodes, int64(o.FullNodes), "full")
		gauge(gpusAllocatable, o.Allocatable)
		gauge(gpusAllocated, o.Allocated)
		gauge(gpusFree, o.FreeOnOccupied, "occupied")
		gauge(gpusFree, o.FreeOnEmpty, "empty")
		gauge(largestFitting, o.LargestFitting)
	}
}

// bounded keeps every exactly configured name, and of those that match a prefix
// the first maxPrefixed by name; the rest become one entry.
func bounded(all []nodes.Occupancy) []nodes.Occupancy {
	var kept []nodes.Occupancy
	prefixed := 0
	rest := nodes.Occupancy{Resource: otherResource}
	for _, o := range all {
		if !o.Exact {
			prefixed++
		}
		if o.Exact || prefixed <= maxPrefixed {
			kept = append(kept, o)
			continue
		}
		rest.EmptyNodes += o.EmptyNodes
		rest.PartialNodes += o.PartialNodes
		rest.FullNodes += o.FullNodes
		rest.Allocatable += o.Allocatable
		rest.Allocated += o.Allocated
		rest.FreeOnOccupied += o.FreeOnOccupied
		rest.FreeOnEmpty += o.FreeOnEmpty
		rest.LargestFitting = max(rest.LargestFitting, o.LargestFitting)
	}
	if prefixed > maxPrefixed {
		kept = append(kept, rest)
	}
	return kept
}
