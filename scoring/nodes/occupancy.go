package nodes

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Occupancy is how the GPUs of one resource name are spread over the nodes that
// offer it. Pods count as in decisions: from the moment they are expected on a
// node until they are gone. A node is occupied while a pod with GPUs of this name
// is on it or expected; DaemonSet pods and terminating ones do not occupy it,
// though the GPUs that they hold are allocated.
type Occupancy struct {
	// Resource is the name.
	Resource string
	// Exact: the name itself is configured, not a prefix of it.
	Exact bool
	// EmptyNodes are not occupied; FullNodes are occupied and have no GPU free;
	// PartialNodes are occupied and have some. Nodes that take no pods, such as
	// cordoned ones, count too.
	EmptyNodes, PartialNodes, FullNodes int
	// Allocatable and Allocated are numbers of GPUs on all these nodes.
	Allocatable, Allocated int64
	// FreeOnOccupied and FreeOnEmpty are free GPUs, only of nodes that may take
	// pods now.
	FreeOnOccupied, FreeOnEmpty int64
	// LargestFitting is the most GPUs that are free together on a node that may
	// take pods now: no larger request can be placed. CPU, memory, taints and
	// affinity of a pod may allow less.
	LargestFitting int64
}

// OccupancyOf returns the occupancy of the nodes for each configured GPU resource that one
// of them offers, sorted by name. takesPods tells whether a node takes pods that ask for the
// resource now.
func OccupancyOf(nodes []*State, gpus config.Resources, takesPods func(*State, corev1.ResourceName) bool) []Occupancy {
	byName := map[corev1.ResourceName]*Occupancy{} // nil for names that are no GPUs
	for _, s := range nodes {
		for _, a := range s.Allocatable {
			o, known := byName[a.Name]
			if !known {
				o = newOccupancy(a.Name, gpus)
				byName[a.Name] = o
			}
			if o != nil {
				o.add(PackingOf(s, a.Name), a.Value, takesPods(s, a.Name))
			}
		}
	}
	var all []Occupancy
	for _, o := range byName {
		if o != nil {
			all = append(all, *o)
		}
	}
	slices.SortFunc(all, func(a, b Occupancy) int { return cmp.Compare(a.Resource, b.Resource) })
	return all
}

// newOccupancy returns nil for a resource that is no configured GPU.
func newOccupancy(name corev1.ResourceName, gpus config.Resources) *Occupancy {
	if !gpus.IsGPU(string(name)) {
		return nil
	}
	return &Occupancy{Resource: string(name), Exact: slices.Contains(gpus.Names, string(name))}
}

// add counts a node.
func (o *Occupancy) add(p Packing, allocatable int64, takesPods bool) {
	// More may be allocated than there is, for example after a GPU broke.
	free := max(p.Free, 0)
	o.Allocatable += allocatable
	o.Allocated += allocatable - p.Free
	switch {
	case !p.Occupied:
		o.EmptyNodes++
	case free == 0:
		o.FullNodes++
	default:
		o.PartialNodes++
	}
	if !takesPods {
		return
	}
	o.LargestFitting = max(o.LargestFitting, free)
	if p.Occupied {
		o.FreeOnOccupied += free
	} else {
		o.FreeOnEmpty += free
	}
}
