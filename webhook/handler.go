package webhook

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/server"
)

// Decider ranks the nodes for a pod. It must be safe for parallel use.
type Decider interface {
	Decide(context.Context, scoring.Request) scoring.Decision
}

// Handler answers admission requests for pods. Whatever happens, it allows the
// pod: failurePolicy Ignore covers failed calls, not a refusal in our own answer,
// so the framework's own error responses, panic handling included, must never be
// reached. It is safe for parallel use.
type Handler struct {
	cfg      config.Configuration
	decider  Decider
	requests *metrics.Requests
	log      logr.Logger
}

var _ admission.Handler = (*Handler)(nil)

// NewHandler returns a handler for a valid configuration.
func NewHandler(cfg config.Configuration, decider Decider, requests *metrics.Requests, log logr.Logger) *Handler {
	return &Handler{cfg: cfg, decider: decider, requests: requests, log: log}
}

// Handle allows the pod of the request, with a patch if it is to be steered.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	start := time.Now()
	outcome := h.steerInTime(ctx, req)
	h.requests.Observe(outcome.steering(), outcome.reason, outcome.dryRun, time.Since(start))
	h.logOutcome(req, outcome)
	return outcome.response(req.UID)
}

// steerInTime is steer within the decision timeout. A late answer becomes an outcome
// without a patch; what the request holds stays held until steer has ended.
func (h *Handler) steerInTime(ctx context.Context, req admission.Request) outcome {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Server.DecisionTimeout.Duration)
	defer cancel()
	done := make(chan outcome, 1) // buffered: a late steer ends all the same
	work := server.WorkOf(ctx)
	work.Begin()
	go func() {
		o := h.steerAlways(ctx, req)
		work.End() // first: whoever has the answer may rely on it
		done <- o
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
		return skipped(steering.ReasonTimeout)
	}
}

// steerAlways is steer, of which a panic becomes an outcome without a patch.
func (h *Handler) steerAlways(ctx context.Context, req admission.Request) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			h.logPanic(req, p)
			o = skipped(steering.ReasonPanic)
		}
	}()
	return h.steer(ctx, req)
}

// steer is the journey of a pod, in order: decode, eligibility, decision, patch.
func (h *Handler) steer(ctx context.Context, req admission.Request) outcome {
	if reason := checkRequest(req); reason != steering.ReasonNone {
		return skipped(reason)
	}
	submitted, reason := decode(req)
	if reason != steering.ReasonNone {
		return skipped(reason)
	}
	dryRun := req.DryRun != nil && *req.DryRun
	decision := scoring.Decision{Reason: steering.Eligible(submitted.user, &h.cfg)}
	if decision.Reason == steering.ReasonNone {
		decision = h.decider.Decide(ctx, scoring.Request{
			Pod:       submitted.user,
			Namespace: req.Namespace,
			UID:       req.UID,
			FirstUID:  types.UID(submitted.pod.Annotations[config.AnnotationAdmission]),
			DryRun:    dryRun,
		})
	}
	patch, reason := buildPatch(submitted, &decision, h.cfg)
	if reason == steering.ReasonNone {
		reason = decision.Reason
	}
	return outcome{reason: reason, decision: decision, patch: patch, dryRun: dryRun, pod: nameForLog(submitted.pod)}
}
