package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
)

// explainUID stands in patches for the UID of the admission request, which only
// the API server can give.
const explainUID types.UID = "00000000-0000-0000-0000-000000000000"

// verdict is what the webhook does with a pod.
type verdict struct {
	// steering is ranked, late, dry-run or none; reason says why there is no
	// ranking.
	steering string
	reason   scoring.Reason
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

// decide runs the webhook's own handler on the pod.
func decide(ctx context.Context, cfg config.Configuration, scorer *scoring.Scorer, pod *corev1.Pod) (*verdict, error) {
	raw, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encoding the pod: %w", err)
	}
	// A person can wait longer than an admission, and looks at every node.
	cfg.Server.DecisionTimeout = metav1.Duration{Duration: time.Minute}
	registry := prometheus.NewRegistry()
	r := &recorder{scorer: scorer, explained: make(chan scoring.Explanation, 1)}
	handler := webhook.NewHandler(cfg, r, webhook.NewMetrics(registry), logr.Discard())
	response := handler.Handle(ctx, creation(pod, raw))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v := &verdict{patch: response.Patch}
	if v.steering, v.reason, err = counted(registry); err != nil {
		return nil, err
	}
	if cfg.Mode == config.ModeDryRun && v.steering != steeringNone {
		v.steering = config.SteeringDryRun
	}
	select {
	case v.Explanation = <-r.explained:
	default: // the pod is left alone whatever the nodes are like
		v.Explanation = scorer.Explain(ctx, scoring.Request{Pod: pod, Namespace: pod.Namespace, UID: explainUID, DryRun: true})
	}
	if v.steering == steeringNone {
		v.Decision = scoring.Decision{Reason: v.reason} // what it might have been does not count
	}
	v.patched, err = patched(raw, response.Patch)
	return v, err
}

// creation is the API server's request for the creation of a pod, on trial.
func creation(pod *corev1.Pod, raw []byte) admission.Request {
	dryRun := true
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       explainUID,
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Namespace: pod.Namespace,
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: raw},
		DryRun:    &dryRun,
	}}
}

// steeringNone is the handler's word for a pod that is not steered.
const steeringNone = "none"

// counted reads from the metrics of a handler what came of its one request.
func counted(registry *prometheus.Registry) (steering string, reason scoring.Reason, err error) {
	families, err := registry.Gather()
	if err != nil {
		return "", "", fmt.Errorf("reading the handler's metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() != "gpu_binpacker_decisions_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetCounter().GetValue() == 0 {
				continue
			}
			for _, label := range metric.GetLabel() {
				switch label.GetName() {
				case "steering":
					steering = label.GetValue()
				case "reason":
					reason = scoring.Reason(label.GetValue())
				}
			}
			return steering, reason, nil
		}
	}
	return "", "", fmt.Errorf("the handler counted no decision")
}

// patched applies a JSON patch to a pod.
func patched(raw, patch []byte) (*corev1.Pod, error) {
	if patch != nil {
		decoded, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, fmt.Errorf("decoding the patch: %w", err)
		}
		if raw, err = decoded.Apply(raw); err != nil {
			return nil, fmt.Errorf("applying the patch: %w", err)
		}
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return nil, fmt.Errorf("decoding the patched pod: %w", err)
	}
	return pod, nil
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
