package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
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
	v.patched, err = patched(pod, trial.Patch)
	return v, err
}

// patched applies a JSON patch to a pod.
func patched(pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	if patch == nil {
		return pod, nil
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encoding the pod: %w", err)
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("decoding the patch: %w", err)
	}
	if raw, err = decoded.Apply(raw); err != nil {
		return nil, fmt.Errorf("applying the patch: %w", err)
	}
	out := &corev1.Pod{}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("decoding the patched pod: %w", err)
	}
	return out, nil
}

// excludedNamespaces are never called for, whatever their labels: those of the
// namespaceSelector in the manifests.
var excludedNamespaces = []string{"kube-system", "cert-manager", config.SystemNamespace}

// obstacle is why the API server would not call the webhook, and what to do.
type obstacle struct{ because, fix string }

// obstacles checks what the API server checks before it calls the webhook.
func obstacles(w *observed, pod *corev1.Pod) []obstacle {
	var all []obstacle
	if w.uninstalled {
		all = append(all, obstacle{"gpu-binpacker is not installed in this cluster", "install it, as its README says"})
	}
	switch {
	case slices.Contains(excludedNamespaces, pod.Namespace):
		all = append(all, obstacle{
			"namespace " + pod.Namespace + " is excluded in the webhook's namespaceSelector",
			"create the pod in another namespace",
		})
	case !w.state.Enabled(pod.Namespace):
		all = append(all, obstacle{
			"namespace " + pod.Namespace + " has not opted in",
			"kubectl label namespace " + pod.Namespace + " " + config.LabelEnabled + "=true",
		})
	}
	if pod.Labels[config.LabelEnabled] == "false" {
		all = append(all, obstacle{
			"the pod has opted out",
			"remove the label " + config.LabelEnabled + " from the metadata of the pod or of its template",
		})
	}
	if !limitsGPU(pod, w.cfg.Resources) {
		all = append(all, noGPU(pod, w.cfg.Resources))
	}
	return all
}

// limitsGPU is the webhook's matchCondition.
func limitsGPU(pod *corev1.Pod, gpus config.Resources) bool {
	return slices.ContainsFunc(limits(pod), gpus.IsGPU)
}

// limits are the names of all resources with a limit, sorted.
func limits(pod *corev1.Pod) []string {
	var names []string
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for name := range containers[i].Resources.Limits {
				names = append(names, string(name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// noGPU explains a pod without a configured GPU. Another extended resource may
// be one.
func noGPU(pod *corev1.Pod, gpus config.Resources) obstacle {
	o := obstacle{
		"the pod asks for no configured GPU resource",
		"add one to resources.limits of a container; configured are " + strings.Join(gpuNames(gpus), ", "),
	}
	for _, name := range limits(pod) {
		if domain, _, ok := strings.Cut(name, "/"); ok && !strings.HasSuffix(domain, "kubernetes.io") {
			o.because += ", though for " + name
			o.fix = "if " + name + " is a GPU, add it to resources.names in the configuration and apply what `gpu-binpacker match-conditions` prints"
			break
		}
	}
	return o
}

func gpuNames(gpus config.Resources) []string {
	names := slices.Clone(gpus.Names)
	for _, prefix := range gpus.Prefixes {
		names = append(names, prefix+"*")
	}
	return names
}
