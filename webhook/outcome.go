package webhook

import (
	"cmp"
	"runtime/debug"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/server"
)

// SteeringNone is the kind of outcome of a pod that is not steered, beside those of
// package config.
const SteeringNone = "none"

// outcome is what came of a request, for the response, the log and the metrics.
type outcome struct {
	// reason says why the pod is not ranked, if it is not.
	reason   steering.Reason
	decision scoring.Decision
	// patch is a JSON patch, nil for none.
	patch  []byte
	dryRun bool
	// pod is the pod's name for the log, empty when it was not decoded.
	pod string
}

// skipped is the outcome of a pod that is left alone.
func skipped(reason steering.Reason) outcome { return outcome{reason: reason} }

// steering is the kind of the outcome, one of a few words: a metric label.
func (o *outcome) steering() string {
	switch {
	case o.reason == steering.ReasonNone:
		return config.SteeringRanked
	case o.reason == steering.ReasonNothingFits && o.decision.Late != nil:
		return config.SteeringLate
	default:
		return SteeringNone
	}
}

// response allows the request. There is no other kind of response.
func (o *outcome) response(uid types.UID) admission.Response {
	r := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{UID: uid, Allowed: true}}
	if o.patch != nil {
		jsonPatch := admissionv1.PatchTypeJSONPatch
		r.Patch, r.PatchType = o.patch, &jsonPatch
	}
	return r
}

// logOutcome writes one line per decision at debug level: names and numbers, of the pod
// its name only, without which nobody could tell which pod a line is about. Lines about our
// own failures, at any level, go without: the UID of the request is in the API server's
// audit log.
func (h *Handler) logOutcome(req admission.Request, o outcome) {
	switch o.reason {
	case steering.ReasonPatch, steering.ReasonTimeout:
		h.log.Info("Pod admitted without steering because of a failure", "namespace", req.Namespace, "requestUID", req.UID, "reason", o.reason)
	case steering.ReasonPanic: // logged with its stack already
	default:
		log := h.log.V(1)
		if !log.Enabled() {
			return // before the values are made
		}
		log.Info("Decided", "namespace", req.Namespace, "requestUID", req.UID, "pod", o.pod, "steering", o.steering(), "reason", o.reason, "target", o.decision.Target(),
			"feasible", o.decision.Feasible, "listed", len(o.decision.Ranking),
			"unlistedMayWin", o.decision.UnlistedMayWin, "dryRun", o.dryRun)
	}
}

// nameForLog is the pod's name or, as most pods get theirs only when they are
// stored, what it will begin with. It is not validated yet, so it may be long.
func nameForLog(pod *corev1.Pod) string {
	name := cmp.Or(pod.Name, pod.GenerateName)
	return name[:min(len(name), validation.DNS1123SubdomainMaxLength)]
}

func (h *Handler) logPanic(req admission.Request, p any) {
	h.log.Error(server.PanicError(p), "Pod admitted without steering because of a panic",
		"namespace", req.Namespace, "requestUID", req.UID, "stack", string(debug.Stack()))
}
