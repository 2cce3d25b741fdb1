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
)

// found is what filtering the nodes found.
type found struct {
	candidates []candidate
	// hostnames: every candidate carries the hostname label.
	hostnames bool
	// userMax is the heaviest of the user's own preferred weights, 0 for none.
	userMax int64
	// softTaints is the most PreferNoSchedule taints on a candidate.
	softTaints int64
}

// feasible returns the nodes that can take the pod.
func (s *Scorer) feasible(v view, pod *corev1.Pod, demand *Demand) (found, Reason) {
	filter := newPodFilter(pod, demand)
	user, userMax, err := userPreferences(pod)
	if err != nil {
		return found{}, ReasonInvalidAffinity
	}
	f := found{hostnames: true, userMax: userMax}
	matching := 0
	for i := range v.nodes {
		state := v.state(i)
		reason, err := filter.check(state)
		if err != nil {
			return found{}, ReasonInvalidAffinity
		}
		if filter.constrained && matching < 2 && reason != NodeNoResource {
			if ok, _ := filter.matches(state); ok {
				matching++
			}
		}
		if reason != NodeFeasible {
			continue
		}
		c := newCandidate(state, &filter, user, v.perGPU)
		f.candidates = append(f.candidates, c)
		f.hostnames = f.hostnames && state.hasHostname()
		f.softTaints = max(f.softTaints, c.softTaints)
	}
	switch {
	case isPinned(pod) || filter.constrained && matching == 1 && len(f.candidates) == 1:
		return f, ReasonPinned
	case len(f.candidates) == 0:
		return f, ReasonNothingFits
	}
	return f, ReasonNone
}

// userPreferences prepares the pod's own preferred node-affinity terms and
// returns their largest weight; nil and 0 when it has none.
func userPreferences(pod *corev1.Pod) (*nodeaffinity.PreferredSchedulingTerms, int64, error) {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil, 0, nil
	}
	terms := pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if len(terms) == 0 {
		return nil, 0, nil
	}
	prepared, err := nodeaffinity.NewPreferredSchedulingTerms(terms)
	if err != nil {
		return nil, 0, err
	}
	var heaviest int64
	for i := range terms {
		heaviest = max(heaviest, int64(terms[i].Weight))
	}
	return prepared, heaviest, nil
}

// podFilter is what the filter needs of a pod, prepared once per decision.
type podFilter struct {
	demand      *Demand
	required    nodeaffinity.RequiredNodeAffinity
	constrained bool // the pod has a node selector or required affinity
	tolerations []corev1.Toleration
}

func newPodFilter(pod *corev1.Pod, d *Demand) podFilter {
	affinity := pod.Spec.Affinity
	return podFilter{
		demand:   d,
		required: nodeaffinity.GetRequiredNodeAffinity(pod),
		constrained: len(pod.Spec.NodeSelector) > 0 || affinity != nil && affinity.NodeAffinity != nil &&
			affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil,
		tolerations: pod.Spec.Tolerations,
	}
}

// check returns why the node cannot or should not take the pod. It follows the
// scheduler's filters; not ready, cordoned and leaving nodes are out even if the
// pod tolerates their taints, since packing onto them helps nobody.
func (f *podFilter) check(s *nodeState) (NodeReason, error) {
	for _, g := range f.demand.GPUs {
		if s.allocatable.get(g.Name) == 0 {
			return NodeNoResource, nil
		}
	}
	switch {
	case s.excluded:
		return NodeExcluded, nil
	case !s.ready:
		return NodeNotReady, nil
	case s.cordoned:
		return NodeCordoned, nil
	case s.leaving:
		return NodeLeaving, nil
	}
	if matches, err := f.matches(s); err != nil || !matches {
		return NodeAffinity, err
	}
	if !f.tolerates(s.object.Spec.Taints) {
		return NodeTainted, nil
	}
	if !fits(s, f.demand) {
		return NodeInsufficient, nil
	}
	return NodeFeasible, nil
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

// softTaints counts the PreferNoSchedule taints that the pod does not tolerate.
func (f *podFilter) softTaints(taints []corev1.Taint) int64 {
	var count int64
	for i := range taints {
		if taints[i].Effect == corev1.TaintEffectPreferNoSchedule &&
			!schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, f.tolerations, &taints[i], true) {
			count++
		}
	}
	return count
}

// fits tells whether the node has everything free that the pod asks for, by
// allocatable, as the scheduler's NodeResourcesFit filter does.
func fits(s *nodeState, d *Demand) bool {
	if s.node == nil || s.used.pods+1 > s.allocatable.get(corev1.ResourcePods) {
		return false
	}
	for _, r := range d.requests {
		if s.allocatable.get(r.name)-s.used.requests.get(r.name) < r.value {
			return false
		}
	}
	return true
}
