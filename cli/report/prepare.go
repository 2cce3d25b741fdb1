package report

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// prepare returns what tells which pods the webhook leaves alone, and how the others look
// without its parts.
func prepare(cfg config.Configuration) func(*corev1.Pod) (*corev1.Pod, steering.Reason) {
	return func(pod *corev1.Pod) (*corev1.Pod, steering.Reason) {
		user, reason := steering.EligibleWhenCreated(pod, &cfg)
		created := *user
		created.Status = corev1.PodStatus{}
		return &created, reason
	}
}
