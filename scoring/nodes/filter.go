package nodes

import (
	corev1 "k8s.io/api/core/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
)

// Reason says why a node is no candidate for a pod.
type Reason string

// Reasons, in the order in which they are checked.
const (
	Feasible     Reason = ""
	NoResource   Reason = "no such GPU resource"
	Excluded     Reason = "excluded by the configuration"
	NotReady     Reason = "not ready"
	Cordoned     Reason = "cordoned"
	Leaving      Reason = "about to be removed"
	Affinity     Reason = "node selector or required affinity does not match"
	Tainted      Reason = "taint not tolerated"
	Insufficient Reason = "not enough free"
	Backoff      Reason = "refused GPU pods a moment ago"
)

// Filter is what the filter needs of a pod, prepared once per decision.
type Filter struct {
	Demand      *demand.Demand
	required    nodeaffinity.RequiredNodeAffinity
	Constrained bool // the pod has a node selector or required affinity
	tolerations []corev1.Toleration
}

// NewFilter prepares what the filter needs of a pod that asks for so much.
func NewFilter(pod *corev1.Pod, d *demand.Demand) Filter {
	return Filter{
		Demand:      d,
		required:    nodeaffinity.GetRequiredNodeAffinity(pod),
		Constrained: len(pod.Spec.NodeSelector) > 0 || requiredTerms(pod) != nil,
		tolerations: pod.Spec.Tolerations,
	}
}

// Check returns why the node cannot or should not take the pod.
func (f *Filter) Check(s *State) (Reason, error) {
	if reason, err := f.CheckNode(s); err != nil || reason != Feasible {
		return reason, err
	}
	if !Fits(s, f.Demand) {
		return Insufficient, nil
	}
	return Feasible, nil
}

// CheckNode is check without the node's room. It follows the scheduler's filters;
// not ready, cordoned and leaving nodes are out even if the pod tolerates their
// taints, since packing onto them helps nobody.
func (f *Filter) CheckNode(s *State) (Reason, error) {
	for _, g := range f.Demand.GPUs {
		if s.Allocatable.Get(g.Name) == 0 {
			return NoResource, nil
		}
	}
	if reason := s.Out(); reason != Feasible {
		return reason, nil
	}
	if matches, err := f.Matches(s); err != nil || !matches {
		return Affinity, err
	}
	if !f.AcceptsMatching(s) {
		return Tainted, nil
	}
	return Feasible, nil
}

// AcceptsMatching is CheckNode for a node that has the GPUs and Matches.
func (f *Filter) AcceptsMatching(s *State) bool {
	return s.Out() == Feasible && f.tolerates(s.Object.Spec.Taints)
}

// Out tells why nothing at all should be packed onto the node.
func (n *Node) Out() Reason {
	switch {
	case n.excluded:
		return Excluded
	case !n.ready:
		return NotReady
	case n.cordoned:
		return Cordoned
	case n.leaving:
		return Leaving
	}
	return Feasible
}

// Matches tells whether node selector and required affinity allow the node.
func (f *Filter) Matches(s *State) (bool, error) {
	if !f.Constrained {
		return true, nil
	}
	return f.required.Match(s.Object)
}

// tolerates tells whether the pod tolerates all NoSchedule and NoExecute taints.
func (f *Filter) tolerates(taints []corev1.Taint) bool {
	if len(taints) == 0 {
		return true
	}
	_, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Logger{}, taints, f.tolerations, blocksScheduling, true)
	return !untolerated
}

func blocksScheduling(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

func isSoft(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule }

// SoftTaints counts the PreferNoSchedule taints that the pod does not tolerate.
func (f *Filter) SoftTaints(n *Node) int64 {
	if !n.softTainted {
		return 0
	}
	var count int64
	taints := n.Object.Spec.Taints
	for i := range taints {
		if isSoft(taints[i]) &&
			!schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, f.tolerations, &taints[i], true) {
			count++
		}
	}
	return count
}
