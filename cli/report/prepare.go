package report

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
)

// prepare returns what tells which pods the webhook leaves alone, and how the
// others look without its parts: it asks the webhook's own handler, which calls a
// decider only for pods that are to be ranked.
func prepare(cfg config.Configuration) func(*corev1.Pod) (*corev1.Pod, steering.Reason) {
	return func(pod *corev1.Pod) (*corev1.Pod, steering.Reason) {
		created := *pod
		created.Spec.NodeName, created.Status = "", corev1.PodStatus{}
		asked := &recorder{}
		trial, err := webhook.Try(context.Background(), cfg, asked, &created)
		switch {
		case err != nil:
			return nil, webhook.ReasonUndecodable
		case asked.pod == nil:
			return nil, trial.Reason
		}
		return asked.pod, steering.ReasonNone
	}
}

// recorder is a decider that keeps the pod and decides nothing.
type recorder struct{ pod *corev1.Pod }

func (r *recorder) Decide(_ context.Context, request scoring.Request) scoring.Decision {
	r.pod = request.Pod
	return scoring.Decision{Reason: steering.ReasonNotSynced}
}
