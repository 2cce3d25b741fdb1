package scoring

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// noteUnsteered counts a pod when it is first seen, if it looks as if we should have been
// asked about it and has no decision of ours. Some of them were asked about and left
// alone; but when they appear and nobody asks at all, the API server does not reach us,
// and failurePolicy Ignore hides that. What becomes of a pod later, when its gates open,
// say, is nothing that we are asked about. Call under lock.
func (ix *Index) noteUnsteered(pod *reducedPod) {
	if pod.over || pod.nodeName != "" {
		delete(ix.seenPending, pod.uid)
		return
	}
	if _, seen := ix.seenPending[pod.uid]; seen {
		return
	}
	ix.seenPending[pod.uid] = struct{}{}
	if pod.expects && ix.Synced() && ix.enabled[pod.namespace] {
		ix.unsteered++
	}
}

// expectsSteering tells whether a new pod, apart from its namespace and requests,
// is one that the API server asks us about and that has no decision of ours.
func expectsSteering(cfg config.Configuration, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return pod.Annotations[config.AnnotationSteering] == "" &&
		pod.Labels[config.LabelEnabled] != "false" &&
		pod.Spec.NodeName == "" &&
		len(pod.Spec.SchedulingGates) == 0 &&
		ServedScheduler(cfg, pod.Spec.SchedulerName) &&
		(owner == nil || owner.Kind != "DaemonSet")
}

// Unsteered is how many GPU pods appeared in opted-in namespaces, since the start,
// that have no decision of ours although nothing in them speaks against one.
func (ix *Index) Unsteered() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.unsteered
}
