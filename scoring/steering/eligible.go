package steering

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Labels of others, by which pods are recognised.
const (
	kueuePodGroupLabel = "kueue.x-k8s.io/pod-group-name"
	kueueQueueLabel    = "kueue.x-k8s.io/queue-name"
)

// Eligible tells why a pod is left alone, if it is, as far as that depends on the pod
// itself: neither on what it requests nor on its namespace. The pod is as its author wrote
// it, without our parts. Everything that has to know whether a pod is steered asks here:
// the webhook, the index, the commands and the simulation.
func Eligible(pod *corev1.Pod, cfg *config.Configuration) Reason {
	switch {
	case pod.Labels[config.LabelEnabled] == "false":
		return ReasonOptedOut
	case IsNodePod(pod):
		return ReasonNodePod
	case pod.Spec.NodeName != "":
		return ReasonBound
	case !ServedScheduler(cfg, pod.Spec.SchedulerName):
		return ReasonOtherScheduler
	case len(pod.Spec.SchedulingGates) > 0:
		return ReasonGated
	case pod.Labels[kueuePodGroupLabel] != "" || pod.Labels[kueueQueueLabel] != "" && len(pod.OwnerReferences) == 0:
		return ReasonPodGroup
	case cfg.Spreading.UserConstraints == config.UserConstraintsRespect && wantsSpread(pod):
		return ReasonSpread
	}
	return ReasonNone
}

// EligibleWhenCreated is Eligible for a stored pod, as it was when it was created: with
// our parts taken out, and without its node.
func EligibleWhenCreated(pod *corev1.Pod, cfg *config.Configuration) (user *corev1.Pod, reason Reason) {
	created := *pod
	created.Spec.NodeName = ""
	user, _ = Separate(&created)
	return user, Eligible(user, cfg)
}

// IsNodePod tells whether a pod belongs to its node and goes with it: a mirror pod, or one
// that a DaemonSet or a Node owns.
func IsNodePod(pod *corev1.Pod) bool {
	return pod.Annotations[corev1.MirrorPodAnnotationKey] != "" ||
		slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" || o.Kind == "Node" })
}

// ServedScheduler tells whether pods of that spec.schedulerName are steered.
func ServedScheduler(cfg *config.Configuration, name string) bool {
	if name == "" {
		name = corev1.DefaultSchedulerName
	}
	return slices.Contains(cfg.SchedulerNames, name)
}

// wantsSpread tells whether the author asks for the pods to be kept apart.
func wantsSpread(pod *corev1.Pod) bool {
	if len(pod.Spec.TopologySpreadConstraints) > 0 {
		return true
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return false
	}
	anti := pod.Spec.Affinity.PodAntiAffinity
	return len(anti.RequiredDuringSchedulingIgnoredDuringExecution)+len(anti.PreferredDuringSchedulingIgnoredDuringExecution) > 0
}

// Follows tells whether the scheduler can still follow the terms of a pending pod.
func Follows(pod *corev1.Pod, cfg *config.Configuration) bool {
	if pod.DeletionTimestamp != nil || isUnschedulable(pod) {
		return false
	}
	_, reason := EligibleWhenCreated(pod, cfg)
	return reason == ReasonNone
}

func isUnschedulable(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// Expects tells whether a pending pod, apart from its namespace and requests, is one that
// the API server asks us about and that has no decision of ours.
func Expects(pod *corev1.Pod, cfg *config.Configuration) bool {
	return pod.Annotations[config.AnnotationSteering] == "" && Eligible(pod, cfg) == ReasonNone
}
