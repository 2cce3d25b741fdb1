package server

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
)

// maxBodyBytes bounds the body of a request, and memory.go what it may take when decoded. The
// API server accepts objects of up to 3 MiB (MaxRequestBodyBytes in k8s.io/apiserver), a
// creation carries one, and the rest of a review is well under 1 MiB.
const maxBodyBytes = 4 << 20

// Server answers AdmissionReviews over HTTP. It stands in for
// controller-runtime's admission.Webhook, which answers a body that is no valid
// review with status 200 and allowed:false: a refusal, where a failed call would
// have been ignored. It is safe for parallel use.
type Server struct {
	handler  admission.Handler
	requests *metrics.Requests
	log      logr.Logger
	// slots bounds the requests that are decoded and decided at once, memory what all
	// under way take. timeout is how long a request may take from its arrival, waiting
	// included.
	slots   chan struct{}
	memory  *memory
	timeout time.Duration
}

var _ http.Handler = (*Server)(nil)

// New returns a server that decodes and decides at most limit requests at once. A request has
// the timeout from its arrival to send its body, to wait for its turn and to be decided. The
// handler is called in parallel. What it leaves running when it answers, if anything, has to
// hold the request's Work.
func New(handler admission.Handler, requests *metrics.Requests, log logr.Logger, limit int, timeout time.Duration) *Server {
	return &Server{
		handler: handler, requests: requests, log: log, timeout: timeout,
		slots: make(chan struct{}, limit), memory: newMemory(),
	}
}

// ServeHTTP answers one review: status 200 and the review's response, or a
// non-2xx status, which failurePolicy Ignore covers, for anything else.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error(PanicError(p), "Request ended by a panic", "stack", string(debug.Stack()))
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
	if refused := checkHeader(r); refused != nil {
		return nil, s.invalid(refused)
	}
	work := &Work{server: s, buffer: takeBuffer()}
	work.Begin()
	defer work.End()
	var err error
	if work.memory, err = s.memory.claim(ctx, r.ContentLength); err != nil {
		return nil, s.busy()
	}
	if refused := s.readBody(ctx, w, r, work); refused != nil {
		return nil, refused
	}
	body := work.buffer.Bytes()
	size := estimate(body)
	if size > maxMemory {
		return nil, s.invalid(&refusal{http.StatusRequestEntityTooLarge, "body has too many elements"})
	}
	if s.memory.correct(ctx, &work.memory, size) != nil || !work.takeSlot(ctx) {
		return nil, s.busy()
	}
	request, err := decodeReview(body)
	if err != nil {
		return nil, s.invalid(&refusal{http.StatusBadRequest, err.Error()})
	}
	response := s.handler.Handle(context.WithValue(ctx, workKey{}, work), *request)
	return &response.AdmissionResponse, nil
}

func (s *Server) busy() *refusal {
	s.requests.CountBusy()
	return &refusal{http.StatusServiceUnavailable, "too many requests under way"}
}

func (s *Server) invalid(why *refusal) *refusal {
	s.requests.CountInvalid()
	return why
}

// checkHeader refuses what is no JSON that is posted, or too long by what it says.
func checkHeader(r *http.Request) *refusal {
	if r.Method != http.MethodPost {
		return &refusal{http.StatusMethodNotAllowed, "method is not POST"}
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return &refusal{http.StatusUnsupportedMediaType, "content type is not application/json"}
	}
	if r.ContentLength > maxBodyBytes {
		return tooLong(maxBodyBytes)
	}
	return nil
}

func tooLong(limit int64) *refusal {
	return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("body is larger than %d bytes", limit)}
}

// readBody reads a body that is sent within the time of the context.
func (s *Server) readBody(ctx context.Context, w http.ResponseWriter, r *http.Request, work *Work) *refusal {
	if deadline, ok := ctx.Deadline(); ok {
		// Not every ResponseWriter can set deadlines; the real server's can.
		_ = http.NewResponseController(w).SetReadDeadline(deadline)
	}
	err := s.readAll(ctx, http.MaxBytesReader(w, r.Body, maxBodyBytes), r.ContentLength, work)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return s.invalid(tooLong(tooLarge.Limit))
	}
	if errors.Is(err, errNoMemory) {
		return s.busy()
	}
	if err != nil {
		return s.invalid(&refusal{http.StatusBadRequest, "body could not be read"})
	}
	// Only now, so that nothing waits for the rest of a body that was given up.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return nil
}

var errNoMemory = errors.New("no memory in time")

// readAll reads everything into the work's buffer. The sender says how long it is;
// negative: unknown.
func (s *Server) readAll(ctx context.Context, from io.Reader, length int64, work *Work) error {
	if length < 0 {
		if _, err := work.buffer.ReadFrom(io.LimitReader(from, smallBody)); err != nil || work.buffer.Len() < smallBody {
			return err
		}
		if s.memory.correct(ctx, &work.memory, maxMemory) != nil {
			return errNoMemory
		}
		length = smallBody // more than that, in steps
	}
	work.buffer.Grow(int(length) + bytes.MinRead) // what ReadFrom wants to spare
	_, err := work.buffer.ReadFrom(from)
	return err
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

// PanicError describes a panic without its value, which could hold a part of the
// pod. Errors of the Go runtime hold only types and numbers and are kept.
func PanicError(p any) error {
	if err, ok := p.(runtime.Error); ok {
		return fmt.Errorf("panic: %w", err)
	}
	return fmt.Errorf("panic with a %T", p)
}
