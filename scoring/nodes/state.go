package nodes

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
)

// State is a node and what is used on it. It is never changed; an event
// replaces it.
type State struct {
	*Node
	Used demand.Load
}

// Without returns the state as if a load were not there.
func (s *State) Without(l demand.Load) *State {
	return &State{Node: s.Node, Used: s.Used.Plus(-1, l)}
}

// Free is how much of a resource is left, negative when more is used than there is.
func (s *State) Free(name corev1.ResourceName) int64 {
	return s.Allocatable.Get(name) - s.Used.Requests.Get(name)
}

// FreePods is how many more pods the node can take.
func (s *State) FreePods() int64 {
	return s.Allocatable.Get(corev1.ResourcePods) - s.Used.Pods
}

// Use is how much of a resource is used.
func (s *State) Use(name corev1.ResourceName) ResourceUse {
	return ResourceUse{Name: name, Allocatable: s.Allocatable.Get(name), Allocated: s.Used.Requests.Get(name)}
}

// Shortages are the resources that keep a pod from fitting, as hasRoom sees it.
func Shortages(s *State, d *demand.Demand) []Shortage {
	var list []Shortage
	if free := s.FreePods(); free < 1 {
		list = append(list, Shortage{Name: corev1.ResourcePods, Requested: 1, Free: free})
	}
	for _, r := range d.Requests {
		if free := s.Free(r.Name); free < r.Value {
			list = append(list, Shortage{Name: r.Name, Requested: r.Value, Free: free})
		}
	}
	slices.SortFunc(list, func(a, b Shortage) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// TakesPods tells whether a pod may be packed onto the node, as far as that depends
// neither on the pod nor on what happened before.
func (s *State) TakesPods() bool { return s.Out() == Feasible && s.FreePods() > 0 }

// Fits tells whether the node has everything free that the pod asks for, by
// allocatable, as the scheduler's NodeResourcesFit filter does.
func Fits(s *State, d *demand.Demand) bool { return HasRoom(s, d.Requests) }

// HasRoom tells whether one more pod with these requests fits on the node.
func HasRoom(s *State, requests demand.Amounts) bool {
	if s.Node == nil || s.Used.Pods+1 > s.Allocatable.Get(corev1.ResourcePods) {
		return false
	}
	for _, r := range requests {
		if s.Allocatable.Get(r.Name)-s.Used.Requests.Get(r.Name) < r.Value {
			return false
		}
	}
	return true
}

// Shortage is a resource that a node has too little of, in whole units, CPU in
// millicores. Its JSON is what explain prints.
type Shortage struct {
	Name      corev1.ResourceName `json:"resource"`
	Requested int64               `json:"requested"`
	Free      int64               `json:"free"`
}

// ResourceUse is how much of a resource of a node is requested by pods, expected
// ones included, in whole units. Its JSON is what explain and nodes print.
type ResourceUse struct {
	Name        corev1.ResourceName `json:"resource"`
	Allocated   int64               `json:"used"`
	Allocatable int64               `json:"allocatable"`
}

// Free is what is left, never negative: a node may offer more than it has, after a
// GPU went unhealthy.
func (u ResourceUse) Free() int64 { return max(u.Allocatable-u.Allocated, 0) }
