package demand

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// statusAgrees tells whether the status of a stored pod says nothing about its
// requests that its spec does not: it was not resized, or that is over. Then what it
// takes follows from its spec alone, which takes a tenth of the time; nearly all
// events are of such pods.
func statusAgrees(pod *corev1.Pod) bool {
	s := &pod.Status
	return s.Resources == nil && s.AllocatedResources == nil && !resourcehelper.IsPodResizeInfeasible(pod) &&
		containersAgree(pod.Spec.Containers, s.ContainerStatuses) &&
		containersAgree(pod.Spec.InitContainers, s.InitContainerStatuses)
}

func containersAgree(containers []corev1.Container, statuses []corev1.ContainerStatus) bool {
	for i := range statuses {
		s := &statuses[i]
		requests, found := requestsOf(containers, s.Name)
		if !found || s.AllocatedResources != nil && !sameQuantities(s.AllocatedResources, requests) ||
			s.Resources != nil && s.Resources.Requests != nil && !sameQuantities(s.Resources.Requests, requests) {
			return false
		}
	}
	return true
}

func requestsOf(containers []corev1.Container, name string) (requests corev1.ResourceList, found bool) {
	for i := range containers {
		if containers[i].Name == name {
			return containers[i].Resources.Requests, true
		}
	}
	return nil, false
}

func sameQuantities(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		if other, ok := b[name]; !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
