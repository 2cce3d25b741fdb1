package webhook

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Limits of a request.
const (
	// maxBodyBytes: the API server accepts objects of up to 3 MiB
	// (MaxRequestBodyBytes in k8s.io/apiserver), a creation carries one, and the
	// rest of a review is well under 1 MiB.
	maxBodyBytes = 4 << 20
	// maxUnreadBytes is how much memory a request gets for what it only says that it
	// will send. A review of a usual pod takes a tenth.
	maxUnreadBytes = 64 << 10
	// memoryBudget bounds what all requests being decoded may take together, by
	// estimate, and maxMemory one of them: a quarter and an eighth of the
	// Deployment's memory limit.
	memoryBudget = 128 << 20
	maxMemory    = 64 << 20
	// bytesPerElement is about the size of the largest list element of a pod, a
	// container (unsafe.Sizeof(corev1.Container{}) and its slice's growth). JSON
	// needs only three bytes for one.
	bytesPerElement = 1200
)

// estimate returns how much memory a body may take when decoded: its bytes, kept
// three times (as received, as raw parts, as the texts in the decoded ones), and
// a list element for every comma.
func estimate(body []byte) int64 {
	return int64(3*len(body) + bytesPerElement*bytes.Count(body, []byte{','}))
}

// Server answers AdmissionReviews over HTTP. It stands in for
// controller-runtime's admission.Webhook, which answers a body that is no valid
// review with status 200 and allowed:false: a refusal, where a failed call would
// have been ignored.
type Server struct {
	handler admission.Handler
	metrics *Metrics
	log     logr.Logger
	// slots bounds the requests under way, memory what they take. timeout is how
	// long a request may take from its arrival, waiting included.
	slots   chan struct{}
	memory  *semaphore.Weighted
	timeout time.Duration
}

var _ http.Handler = (*Server)(nil)

// NewServer returns a server that handles at most limit requests at once. A
// request has the timeout from its arrival to wait for its turn, to send its body
// and to be decided.
func NewServer(handler admission.Handler, metrics *Metrics, log logr.Logger, limit int, timeout time.Duration) *Server {
	return &Server{
		handler: handler, metrics: metrics, log: log, timeout: timeout,
		slots: make(chan struct{}, limit), memory: semaphore.NewWeighted(memoryBudget),
	}
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
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	response, refusal := s.answer(ctx, w, r)
	if refusal != nil {
		s.log.V(1).Info("Refused a request", "status", refusal.status, "error", refusal.message)
		http.Error(w, refusal.message, refusal.status)
		return
	}
	s.write(w, r, response)
}

// refusal is a status other than 2xx and its text.
type refusal struct {
	status  int
	message string
}

// answer handles one request within the limits.
func (s *Server) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionResponse, *refusal) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, s.busy()
	}
	buffer := takeBuffer()
	defer func() {
		if ctx.Err() == nil { // else a handler that was not waited for may still read it
			giveBuffer(buffer)
		}
	}()
	body, refused := readBody(ctx, w, r, buffer)
	if refused == nil && estimate(body) > maxMemory {
		refused = &refusal{http.StatusRequestEntityTooLarge, "body has too many elements"}
	}
	if refused != nil {
		s.metrics.invalid.Inc()
		return nil, refused
	}
	size := estimate(body)
	if s.memory.Acquire(ctx, size) != nil {
		return nil, s.busy()
	}
	defer s.memory.Release(size)
	request, err := decodeReview(body)
	if err != nil {
		s.metrics.invalid.Inc()
		return nil, &refusal{http.StatusBadRequest, err.Error()}
	}
	response := s.handler.Handle(ctx, *request)
	return &response.AdmissionResponse, nil
}

func (s *Server) busy() *refusal {
	s.metrics.busy.Inc()
	return &refusal{http.StatusServiceUnavailable, "too many requests under way"}
}

// readBody reads a JSON body that is posted within the time of the context. The buffer
// is used for one of usual size.
func readBody(ctx context.Context, w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer) ([]byte, *refusal) {
	if r.Method != http.MethodPost {
		return nil, &refusal{http.StatusMethodNotAllowed, "method is not POST"}
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return nil, &refusal{http.StatusUnsupportedMediaType, "content type is not application/json"}
	}
	if deadline, ok := ctx.Deadline(); ok {
		// Not every ResponseWriter can set deadlines; the real server's can.
		_ = http.NewResponseController(w).SetReadDeadline(deadline)
	}
	body, err := readAll(http.MaxBytesReader(w, r.Body, maxBodyBytes), r.ContentLength, buffer)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("body is larger than %d bytes", tooLarge.Limit)}
	}
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "body could not be read"}
	}
	// Only now, so that nothing waits for the rest of a body that was given up.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return body, nil
}

// readAll reads everything, of which the sender says how long it is; negative: unknown.
func readAll(from io.Reader, length int64, buffer *bytes.Buffer) ([]byte, error) {
	if length < 0 || length > maxUnreadBytes {
		return io.ReadAll(from)
	}
	buffer.Grow(int(length) + bytes.MinRead) // what ReadFrom wants to spare
	_, err := buffer.ReadFrom(from)
	return buffer.Bytes(), err
}

// decodeReview decodes the request of a valid admission.k8s.io/v1 review. The request's
// object is a part of the body.
func decodeReview(body []byte) (*admission.Request, error) {
	var review wireReview
	// Names that are there twice are the pod's matter, which is decoded on its own.
	if err := json.Unmarshal(body, &review, tolerant, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, errors.New("body is not an AdmissionReview")
	}
	if review.APIVersion != admissionv1.SchemeGroupVersion.String() || review.Kind != "AdmissionReview" {
		return nil, fmt.Errorf("body is not an %s AdmissionReview", admissionv1.SchemeGroupVersion)
	}
	r := review.Request
	if r == nil || r.UID == "" {
		return nil, errors.New("review has no request with a UID")
	}
	return &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: r.UID, Kind: r.Kind, Resource: r.Resource, SubResource: r.SubResource,
		Name: r.Name, Namespace: r.Namespace, Operation: r.Operation, DryRun: r.DryRun,
		Object: runtime.RawExtension{Raw: r.Object.in(body)},
	}}, nil
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, response *admissionv1.AdmissionResponse) {
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: response,
	}
	body := takeBuffer()
	defer giveBuffer(body)
	if err := json.MarshalWrite(body, review, written); err != nil {
		s.log.Error(err, "Response could not be written")
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	if err := writeAtOnce(w, r, body.Bytes()); err != nil {
		s.log.V(1).Info("Response was not taken", "error", err.Error())
	}
}
