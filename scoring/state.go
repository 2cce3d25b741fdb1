package scoring

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// nodeState is a node and what is used on it. It is never changed; an event
// replaces it.
type nodeState struct {
	*node
	used load
}

// without returns the state as if a load were not there.
func (s *nodeState) without(l load) *nodeState {
	return &nodeState{node: s.node, used: s.used.plus(-1, l)}
}

func (s *nodeState) free(name corev1.ResourceName) int64 {
	return s.allocatable.get(name) - s.used.requests.get(name)
}

// freePods is how many more pods the node can take.
func (s *nodeState) freePods() int64 {
	return s.allocatable.get(corev1.ResourcePods) - s.used.pods
}

func (s *nodeState) use(name corev1.ResourceName) ResourceUse {
	return ResourceUse{Name: name, Allocatable: s.allocatable.get(name), Allocated: s.used.requests.get(name)}
}

// shortages are the resources that keep a pod from fitting, as hasRoom sees it.
func shortages(s *nodeState, d *Demand) []Shortage {
	var list []Shortage
	if free := s.freePods(); free < 1 {
		list = append(list, Shortage{Name: corev1.ResourcePods, Requested: 1, Free: free})
	}
	for _, r := range d.requests {
		if free := s.free(r.name); free < r.value {
			list = append(list, Shortage{Name: r.name, Requested: r.value, Free: free})
		}
	}
	slices.SortFunc(list, func(a, b Shortage) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// takesPods tells whether a pod may be packed onto the node, as far as that depends
// neither on the pod nor on what happened before.
func (s *nodeState) takesPods() bool { return s.out() == NodeFeasible && s.freePods() > 0 }

// fits tells whether the node has everything free that the pod asks for, by
// allocatable, as the scheduler's NodeResourcesFit filter does.
func fits(s *nodeState, d *Demand) bool { return hasRoom(s, d.requests) }

// hasRoom tells whether one more pod with these requests fits on the node.
func hasRoom(s *nodeState, requests amounts) bool {
	if s.node == nil || s.used.pods+1 > s.allocatable.get(corev1.ResourcePods) {
		return false
	}
	for _, r := range requests {
		if s.allocatable.get(r.name)-s.used.requests.get(r.name) < r.value {
			return false
		}
	}
	return true
}

// Shortage is a resource that a node has too little of, in whole units, CPU in
// millicores.
type Shortage struct {
	Name            corev1.ResourceName
	Requested, Free int64
}

// ResourceUse is how much of a resource of a node is requested by pods, expected
// ones included, in whole units.
type ResourceUse struct {
	Name                   corev1.ResourceName
	Allocatable, Allocated int64
}

// Free is what is left, never negative: a node may offer more than it has, after a
// GPU went unhealthy.
func (u ResourceUse) Free() int64 { return max(u.Allocatable-u.Allocated, 0) }
