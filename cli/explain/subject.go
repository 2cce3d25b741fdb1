package explain

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

// Subject is the pod to explain.
type Subject struct {
	// Pod is the pod as webhooks get it when it is created: no node, no status.
	Pod *corev1.Pod
	// Source says where it is from.
	Source string
	// existing is the pod as it is; nil for one that does not exist.
	existing *corev1.Pod
}

// Existing is a pod that exists, as it would be submitted again.
func Existing(existing *corev1.Pod) *Subject {
	pod := existing.DeepCopy()
	pod.UID, pod.ResourceVersion, pod.Generation, pod.ManagedFields = "", "", 0, nil
	pod.CreationTimestamp, pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = metav1.Time{}, nil, nil
	pod.Spec.NodeName = ""
	pod.Status = corev1.PodStatus{}
	return &Subject{Pod: withDefaults(pod), Source: "existing", existing: existing}
}

// Example is the pod that comes with the built-in cluster.
func Example() *Subject {
	return &Subject{Pod: withDefaults(state.ExamplePod()), Source: "a pod of the built-in example"}
}

// withDefaults does what the API server does before it calls webhooks, as far as
// decisions depend on it. It changes the pod.
func withDefaults(pod *corev1.Pod) *corev1.Pod {
	pod.APIVersion, pod.Kind = "v1", "Pod"
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	return demand.WithDefaultedRequests(pod)
}
