package steering

import (
	"github.com/gpu-binpacker/gpu-binpacker/config"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"
)

// followsTerms tells whether the scheduler can still follow a pending pod's terms.
func Follows(cfg config.Configuration, pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil &&
		pod.Labels[config.LabelEnabled] != "false" &&
		len(pod.Spec.SchedulingGates) == 0 &&
		ServedScheduler(cfg, pod.Spec.SchedulerName) &&
		!isUnschedulable(pod)
}

// ServedScheduler tells whether pods of that spec.schedulerName are steered.
func ServedScheduler(cfg config.Configuration, name string) bool {
	if name == "" {
		name = corev1.DefaultSchedulerName
	}
	for _, n := range cfg.SchedulerNames {
		if n == name {
			return true
		}
	}
	return false
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

// expectsSteering tells whether a new pod, apart from its namespace and requests,
// is one that the API server asks us about and that has no decision of ours.
func Expects(cfg config.Configuration, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return pod.Annotations[config.AnnotationSteering] == "" &&
		pod.Labels[config.LabelEnabled] != "false" &&
		pod.Spec.NodeName == "" &&
		len(pod.Spec.SchedulingGates) == 0 &&
		ServedScheduler(cfg, pod.Spec.SchedulerName) &&
		(owner == nil || owner.Kind != "DaemonSet")
}
