package scoring

import (
	corev1 "k8s.io/api/core/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// NodeReason says why a node is no candidate for a pod.
type NodeReason string

// Reasons, in the order in which they are checked.
const (
	NodeFeasible     NodeReason = ""
	NodeNoResource   NodeReason = "no such GPU resource"
	NodeExcluded     NodeReason = "excluded by the configuration"
	NodeNotReady     NodeReason = "not ready"
	NodeCordoned     NodeReason = "cordoned"
	NodeLeaving      NodeReason = "about to be removed"
	NodeAffinity     NodeReason = "node selector or required affinity does not match"
	NodeTainted      NodeReason = "taint not tolerated"
	NodeInsufficient NodeReason = "not enough free"
	NodeBackoff      NodeReason = "refused GPU pods a moment ago"
)

// podFilter is what the filter needs of a pod, prepared once per decision.
type podFilter struct {
	demand      *Demand
	required    nodeaffinity.RequiredNodeAffinity
	constrained bool // the pod has a node selector or required affinity
	tolerations []corev1.Toleration
}

func newPodFilter(pod *corev1.Pod, d *Demand) podFilter {
	return podFilter{
		demand:      d,
		required:    nodeaffinity.GetRequiredNodeAffinity(pod),
		constrained: len(pod.Spec.NodeSelector) > 0 || requiredTerms(pod) != nil,
		tolerations: pod.Spec.Tolerations,
	}
}

// check returns why the node cannot or should not take the pod.
func (f *podFilter) check(s *nodeState) (NodeReason, error) {
	if reason, err := f.checkNode(s); err != nil || reason != NodeFeasible {
		return reason, err
	}
	if !fits(s, f.demand) {
		return NodeInsufficient, nil
	}
	return NodeFeasible, nil
}

// checkNode is check without the node's room. It follows the scheduler's filters;
// not ready, cordoned and leaving nodes are out even if the pod tolerates their
// taints, since packing onto them helps nobody.
func (f *podFilter) checkNode(s *nodeState) (NodeReason, error) {
	for _, g := range f.demand.GPUs {
		if s.allocatable.get(g.Name) == 0 {
			return NodeNoResource, nil
		}
	}
	if reason := s.out(); reason != NodeFeasible {
		return reason, nil
	}
	if matches, err := f.matches(s); err != nil || !matches {
		return NodeAffinity, err
	}
	if !f.tolerates(s.object.Spec.Taints) {
		return NodeTainted, nil
	}
	return NodeFeasible, nil
}

// out tells why nothing at all should be packed onto the node.
func (n *node) out() NodeReason {
	switch {
	case n.excluded:
		return NodeExcluded
	case !n.ready:
		return NodeNotReady
	case n.cordoned:
		return NodeCordoned
	case n.leaving:
		return NodeLeaving
	}
	return NodeFeasible
}

// matches tells whether node selector and required affinity allow the node.
func (f *podFilter) matches(s *nodeState) (bool, error) {
	if !f.constrained {
		return true, nil
	}
	return f.required.Match(s.object)
}

// tolerates tells whether the pod tolerates all NoSchedule and NoExecute taints.
func (f *podFilter) tolerates(taints []corev1.Taint) bool {
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

// softTaints counts the PreferNoSchedule taints that the pod does not tolerate.
func (f *podFilter) softTaints(n *node) int64 {
	if !n.softTainted {
		return 0
	}
	var count int64
	taints := n.object.Spec.Taints
	for i := range taints {
		if isSoft(taints[i]) &&
			!schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, f.tolerations, &taints[i], true) {
			count++
		}
	}
	return count
}
