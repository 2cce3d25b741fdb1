package explain

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
)

// verdict is what the webhook does with a pod.
type verdict struct {
	// steering is ranked, late, dry-run or none; reason says why there is no
	// ranking.
	steering string
	reason   steering.Reason
	scoring.Explanation
	// patch is what the API server would get; patched is the pod with it.
	patch   []byte
	patched *corev1.Pod
}

// recorder decides as the scorer does, without reserving anything, and keeps what
// the decision goes by.
type recorder struct {
	scorer    *scoring.Scorer
	explained chan scoring.Explanation
}

// Decide implements webhook.Decider.
func (r *recorder) Decide(ctx context.Context, request scoring.Request) scoring.Decision {
	e := r.scorer.Explain(ctx, request)
	r.explained <- e
	return e.Decision
}

// decide puts the pod through the webhook's own handler.
func decide(ctx context.Context, cfg config.Configuration, scorer *scoring.Scorer, pod *corev1.Pod) (*verdict, error) {
	r := &recorder{scorer: scorer, explained: make(chan scoring.Explanation, 1)}
	trial, err := webhook.Try(ctx, cfg, r, pod)
	if err != nil {
		return nil, err
	}
	v := &verdict{patch: trial.Patch, steering: trial.Steering, reason: trial.Reason}
	if cfg.Mode == config.ModeDryRun && v.steering != webhook.SteeringNone {
		v.steering = config.SteeringDryRun
	}
	select {
	case v.Explanation = <-r.explained:
	default: // the pod is left alone whatever the nodes are like
		v.Explanation = scorer.Explain(ctx, scoring.Request{Pod: pod, Namespace: pod.Namespace, UID: webhook.TrialUID, DryRun: true})
	}
	if v.steering == webhook.SteeringNone {
		v.Decision = scoring.Decision{Reason: v.reason} // what it might have been does not count
	}
	v.patched, err = trial.Apply(pod)
	return v, err
}
