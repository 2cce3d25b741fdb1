package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// TrialUID stands in the patch of a trial for the UID of the admission request, which
// only the API server can give.
const TrialUID types.UID = "00000000-0000-0000-0000-000000000000"

// trialTimeout takes the place of the decision timeout: nobody's pod waits, and a busy
// machine must not change the answer.
const trialTimeout = time.Minute

// Trial is what the handler makes of a pod.
type Trial struct {
	// Steering is config.SteeringRanked, config.SteeringLate or SteeringNone.
	Steering string
	// Reason says why there is no ranking; scoring.ReasonNone when there is one.
	Reason steering.Reason
	// Patch is the JSON patch that the API server would get, nil for none.
	Patch []byte
}

// Apply returns the pod as the API server would have it with the patch.
func (t Trial) Apply(pod *corev1.Pod) (*corev1.Pod, error) {
	if t.Patch == nil {
		return pod, nil
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encoding the pod: %w", err)
	}
	decoded, err := jsonpatch.DecodePatch(t.Patch)
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

// Try puts a pod through everything that the webhook does at its creation, as a dry
// run, without logs and metrics. The error is about encoding the pod, or the context's.
func Try(ctx context.Context, cfg config.Configuration, decider Decider, pod *corev1.Pod) (Trial, error) {
	raw, err := json.Marshal(pod)
	if err != nil {
		return Trial{}, fmt.Errorf("encoding the pod: %w", err)
	}
	cfg.Server.DecisionTimeout = metav1.Duration{Duration: trialTimeout}
	dryRun := true
	h := &Handler{cfg: cfg, decider: decider, log: logr.Discard()}
	o := h.steerInTime(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       TrialUID,
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Namespace: pod.Namespace,
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: raw},
		DryRun:    &dryRun,
	}})
	return Trial{Steering: o.steering(), Reason: o.reason, Patch: o.patch}, ctx.Err()
}
