package webhook

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// Decider ranks the nodes for a pod. It must be safe for parallel use.
type Decider interface {
	Decide(scoring.Request) scoring.Decision
}

// Handler answers admission requests for pods. Whatever happens, it allows the
// pod: failurePolicy Ignore covers failed calls, not a refusal in our own answer,
// so the framework's own error responses, panic handling included, must never be
// reached.
type Handler struct {
	cfg     config.Configuration
	decider Decider
	metrics *Metrics
	log     logr.Logger
}

var _ admission.Handler = (*Handler)(nil)

// NewHandler returns a handler for a valid configuration.
func NewHandler(cfg config.Configuration, decider Decider, metrics *Metrics, log logr.Logger) *Handler {
	return &Handler{cfg: cfg, decider: decider, metrics: metrics, log: log}
}

// Handle allows the pod of the request, with a patch if it is to be steered.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	start := time.Now()
	outcome := h.steerInTime(ctx, req)
	h.metrics.observe(outcome, time.Since(start))
	h.logOutcome(req, outcome)
	return outcome.response(req.UID)
}

// steerInTime is steer within the decision timeout. A panic or a late answer
// becomes an outcome without a patch.
func (h *Handler) steerInTime(ctx context.Context, req admission.Request) outcome {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Server.DecisionTimeout.Duration)
	defer cancel()
	done := make(chan outcome, 1) // buffered: a late steer ends all the same
	go func() {
		defer func() {
			if p := recover(); p != nil {
				h.logPanic(req, p)
				done <- skipped(ReasonPanic)
			}
		}()
		done <- h.steer(req)
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
		return skipped(ReasonTimeout)
	}
}

// steer is the journey of a pod, in order: decode, eligibility, decision, patch.
func (h *Handler) steer(req admission.Request) outcome {
	if reason := checkRequest(req); reason != scoring.ReasonNone {
		return skipped(reason)
	}
	submitted, reason := decode(req)
	if reason != scoring.ReasonNone {
		return skipped(reason)
	}
	if reason := eligible(submitted.user, h.cfg); reason != scoring.ReasonNone {
		return skipped(reason)
	}
	dryRun := req.DryRun != nil && *req.DryRun
	uid := submitted.admissionUID(req.UID)
	decision := h.decider.Decide(scoring.Request{Pod: submitted.user, Namespace: req.Namespace, UID: uid, DryRun: dryRun})
	patch, reason := buildPatch(submitted, &decision, uid, h.cfg)
	return outcome{reason: firstReason(reason, decision.Reason), decision: decision, patch: patch, dryRun: dryRun}
}

func firstReason(reasons ...scoring.Reason) scoring.Reason {
	for _, r := range reasons {
		if r != scoring.ReasonNone {
			return r
		}
	}
	return scoring.ReasonNone
}

// admissionUID is the UID of the pod's first admission request. The API server
// gives a reinvocation a new one; the first stays, since the reservation is kept
// under it.
func (s *submission) admissionUID(current types.UID) types.UID {
	if first := s.pod.Annotations[config.AnnotationAdmission]; first != "" && len(first) <= maxUIDLength {
		return types.UID(first)
	}
	return current
}

// maxUIDLength is the length of a UUID in text, what the API server sends.
const maxUIDLength = 36
