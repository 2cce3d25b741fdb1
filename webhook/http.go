package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"
)

// Limits of a request.
const (
	// maxBodyBytes: the API server accepts objects of up to 3 MiB
	// (MaxRequestBodyBytes in k8s.io/apiserver), a creation carries one, and the
	// rest of a review is well under 1 MiB.
	maxBodyBytes = 4 << 20
	// bodyTimeout is the webhook's timeout in the API server: a body that takes
	// longer belongs to a call that was given up.
	bodyTimeout = time.Second
)

// Server answers AdmissionReviews over HTTP. It stands in for
// controller-runtime's admission.Webhook, which answers a body that is no valid
// review with status 200 and allowed:false: a refusal, where a failed call would
// have been ignored.
type Server struct {
	handler admission.Handler
	metrics *Metrics
	log     logr.Logger
	// slots bounds the requests under way; wait is how long one waits for a slot.
	slots chan struct{}
	wait  time.Duration
}

var _ http.Handler = (*Server)(nil)

// NewServer returns a server that handles at most limit requests at once; others
// wait up to wait.
func NewServer(handler admission.Handler, metrics *Metrics, log logr.Logger, limit int, wait time.Duration) *Server {
	return &Server{handler: handler, metrics: metrics, log: log, slots: make(chan struct{}, limit), wait: wait}
}

// ServeHTTP answers one review: status 200 and the review's response, or a
// non-2xx status, which failurePolicy Ignore covers, for anything else.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error(panicError(p), "Request ended by a panic", "stack", string(debug.Stack()))
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}()
	if !s.acquire(r.Context()) {
		s.metrics.busy.Inc()
		http.Error(w, "too many requests under way", http.StatusServiceUnavailable)
		return
	}
	defer func() { <-s.slots }()
	review, status, err := readReview(w, r)
	if err != nil {
		s.metrics.invalid.Inc()
		s.log.V(1).Info("Refused an invalid request", "status", status, "error", err.Error())
		http.Error(w, err.Error(), status)
		return
	}
	response := s.handler.Handle(r.Context(), admission.Request{AdmissionRequest: *review.Request})
	s.write(w, &response.AdmissionResponse)
}

// acquire takes a slot, waiting a little.
func (s *Server) acquire(ctx context.Context) bool {
	select {
	case s.slots <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case s.slots <- struct{}{}:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

// readReview reads a valid admission.k8s.io/v1 review, or tells with which
// status to refuse it.
func readReview(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionReview, int, error) {
	if r.Method != http.MethodPost {
		return nil, http.StatusMethodNotAllowed, fmt.Errorf("method %s is not POST", r.Method)
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("content type is not application/json")
	}
	// Not every ResponseWriter can set deadlines; the real server's can.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("body is larger than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("reading body: %w", err)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	review := &admissionv1.AdmissionReview{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, review); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("body is not an AdmissionReview")
	}
	if review.APIVersion != admissionv1.SchemeGroupVersion.String() || review.Kind != "AdmissionReview" {
		return nil, http.StatusBadRequest, fmt.Errorf("body is not an %s AdmissionReview", admissionv1.SchemeGroupVersion)
	}
	if review.Request == nil || review.Request.UID == "" {
		return nil, http.StatusBadRequest, fmt.Errorf("review has no request with a UID")
	}
	return review, http.StatusOK, nil
}

func (s *Server) write(w http.ResponseWriter, response *admissionv1.AdmissionResponse) {
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: response,
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		s.log.V(1).Info("Response was not taken", "error", err.Error())
	}
}
