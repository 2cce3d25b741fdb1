package config

import "strings"

// Resources says which extended resource names are GPUs: exact names and
// explicit prefixes, never a substring. Names are never added together or
// compared: a pod is ranked only by the names it asks for.
type Resources struct {
	// Names are exact resource names.
	Names []string `json:"names"`
	// Prefixes end in "-" or "/" and match every name that continues them, such
	// as "nvidia.com/mig-".
	Prefixes []string `json:"prefixes"`
}

// defaultResources are the names that the vendors' device plugins register.
// Left out on purpose: google.com/tpu, since a slice takes all chips of a node,
// and monitoring names such as gpu.intel.com/i915_monitoring, which are no GPUs.
func defaultResources() Resources {
	return Resources{
		Names: []string{
			"nvidia.com/gpu",
			"nvidia.com/gpu.shared",
			"amd.com/gpu",
			"gpu.intel.com/i915",
			"gpu.intel.com/xe",
			"habana.ai/gaudi",
			"aws.amazon.com/neuron",
			"aws.amazon.com/neuroncore",
			"aws.amazon.com/neurondevice",
		},
		Prefixes: []string{"nvidia.com/mig-"},
	}
}

// IsGPU tells whether the resource name is one of the configured ones. For a
// MIG name with time-slicing ("nvidia.com/mig-1g.5gb.shared") the prefix counts.
func (r Resources) IsGPU(name string) bool {
	for _, n := range r.Names {
		if n == name {
			return true
		}
	}
	for _, p := range r.Prefixes {
		if len(name) > len(p) && strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
