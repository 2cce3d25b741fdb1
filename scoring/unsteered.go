package scoring

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// noteUnsteered counts a pod once if it looks as if we should have been asked about it
// and has no decision of ours. Some of them were asked about and left alone; but when
// they appear and nobody asks at all, the API server does not reach us, and
// failurePolicy Ignore hides that. Call under lock.
func (ix *Index) noteUnsteered(pod *reducedPod) {
	if !pod.expects {
		delete(ix.unsteeredPods, pod.uid)
		return
	}
	if _, known := ix.unsteeredPods[pod.uid]; known {
		return
	}
	ix.unsteeredPods[pod.uid] = struct{}{}
	if ix.Synced() && ix.enabled[pod.namespace] {
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
