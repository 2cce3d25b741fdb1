package simulate

import (
	"cmp"
	"slices"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// Node is a node that offers GPUs, and how it is used.
type Node struct {
	Name string `json:"name"`
	// InstanceType is the node's label node.kubernetes.io/instance-type.
	InstanceType string `json:"instanceType,omitempty"`
	// GPUs are the GPU resources that it offers, sorted by name.
	GPUs []GPUs `json:"gpus"`
	// Pods is how many pods hold GPUs; those of DaemonSets and ending ones do not
	// count.
	Pods int64 `json:"pods"`
	// OtherPods is how many further pods an autoscaler would have to move: without
	// GPUs or ending, and not of a DaemonSet or static.
	OtherPods int `json:"otherPods"`
	// Out says why nothing is packed onto it, whatever asks.
	Out nodes.Reason `json:"out,omitempty"`
}

// GPUs are the GPUs of one resource name on a node.
type GPUs struct {
	Resource    string `json:"resource"`
	Allocatable int64  `json:"allocatable"`
	Allocated   int64  `json:"allocated"`
}

// Free is how many are not allocated, never negative.
func (g GPUs) Free() int64 { return max(g.Allocatable-g.Allocated, 0) }

// Occupied tells whether a GPU pod holds the node.
func (n *Node) Occupied() bool { return n.Pods > 0 }

// Removable tells whether an autoscaler could remove the node: nothing but pods of
// DaemonSets and static pods is on it.
func (n *Node) Removable() bool { return n.Pods == 0 && n.OtherPods == 0 }

// Figures sum up nodes. GPUs of different names are never added up.
type Figures struct {
	// Nodes offer GPUs. Each is either Occupied, by a GPU pod, or Empty. Removable
	// are the empty ones with nothing on them but pods of DaemonSets and static pods.
	Nodes     int `json:"nodes"`
	Occupied  int `json:"occupied"`
	Empty     int `json:"empty"`
	Removable int `json:"removable"`
	// Out is how many take no pods: not ready, cordoned or about to be removed.
	Out int `json:"out"`
	// Resources are the figures by resource name, sorted.
	Resources []ResourceFigures `json:"resources"`
}

// ResourceFigures are those of one GPU resource name.
type ResourceFigures struct {
	Resource string `json:"resource"`
	// Nodes offer it, of which Occupied hold a GPU pod.
	Nodes    int `json:"nodes"`
	Occupied int `json:"occupied"`
	// Allocatable and Allocated are numbers of GPUs, on all nodes.
	Allocatable int64 `json:"allocatable"`
	Allocated   int64 `json:"allocated"`
	// Stranded are free GPUs on occupied nodes, of those that take pods.
	Stranded int64 `json:"stranded"`
	// LargestPod is the most GPUs that are free together on a node that takes pods.
	LargestPod int64 `json:"largestPod"`
	// Fits is how many pods of a size would find their GPUs, one size at a time.
	Fits []Fit `json:"fits"`
}

// Fit is how many pods with so many GPUs each would find them free, if nothing but
// GPUs mattered.
type Fit struct {
	GPUs int64 `json:"gpus"`
	Pods int64 `json:"pods"`
}

// fitSizes are the sizes of pods that are looked at.
var fitSizes = []int64{1, 2, 4, 8}

// Count sums up nodes.
func Count(all []Node) Figures {
	f := Figures{Nodes: len(all)}
	byName := map[string]*ResourceFigures{}
	for i := range all {
		n := &all[i]
		switch {
		case n.Occupied():
			f.Occupied++
		case n.Removable():
			f.Empty++
			f.Removable++
		default:
			f.Empty++
		}
		if n.Out != nodes.Feasible {
			f.Out++
		}
		for _, g := range n.GPUs {
			r := byName[g.Resource]
			if r == nil {
				r = newResourceFigures(g.Resource)
				byName[g.Resource] = r
			}
			r.add(n, g)
		}
	}
	for _, r := range byName {
		f.Resources = append(f.Resources, *r)
	}
	slices.SortFunc(f.Resources, func(a, b ResourceFigures) int { return cmp.Compare(a.Resource, b.Resource) })
	return f
}

func newResourceFigures(name string) *ResourceFigures {
	r := &ResourceFigures{Resource: name}
	for _, size := range fitSizes {
		r.Fits = append(r.Fits, Fit{GPUs: size})
	}
	return r
}

func (r *ResourceFigures) add(n *Node, g GPUs) {
	r.Nodes++
	r.Allocatable += g.Allocatable
	r.Allocated += g.Allocated
	if n.Occupied() {
		r.Occupied++
	}
	if n.Out != nodes.Feasible {
		return
	}
	if n.Occupied() {
		r.Stranded += g.Free()
	}
	r.LargestPod = max(r.LargestPod, g.Free())
	for i := range r.Fits {
		r.Fits[i].Pods += g.Free() / r.Fits[i].GPUs
	}
}

// nodes returns the nodes of an index, sorted by name.
func (sim *Simulation) nodes(ix *index.Index, others map[string]int) []Node {
	used := ix.Nodes()
	list := make([]Node, len(used))
	for i, u := range used {
		n := Node{Name: u.Name, InstanceType: sim.types[u.Name], Pods: u.Pods, OtherPods: others[u.Name], Out: u.Out}
		for _, g := range u.GPUs {
			n.GPUs = append(n.GPUs, GPUs{Resource: string(g.Name), Allocatable: g.Allocatable, Allocated: g.Allocated})
		}
		list[i] = n
	}
	return list
}

func compareKept(a, b Kept) int {
	return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Reason, b.Reason))
}
