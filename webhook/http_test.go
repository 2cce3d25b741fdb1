package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// allowing is a handler that allows everything.
type allowing struct{}

func (allowing) Handle(_ context.Context, r admission.Request) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{UID: r.UID, Allowed: true}}
}

// panicking is a handler that panics.
type panicking struct{}

func (panicking) Handle(_ context.Context, r admission.Request) admission.Response { panic(r) }

// review wraps an object into a review with UID "u".
func review(object string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"team-a",` +
		`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"object":` + object + `}}`
}

func TestServeHTTP(t *testing.T) {
	good := review(gpuPod)
	tests := map[string]struct {
		method, contentType string // POST and application/json by default
		body                io.Reader
		wantStatus          int // 200 also wants UID "u" and allowed
	}{
		"valid":                   {body: strings.NewReader(good), wantStatus: 200},
		"valid, with charset":     {body: strings.NewReader(good), contentType: "application/json; charset=utf-8", wantStatus: 200},
		"valid, byte by byte":     {body: iotest.OneByteReader(strings.NewReader(good)), wantStatus: 200},
		"valid, with white space": {body: strings.NewReader(" \n" + good + "\n "), wantStatus: 200},
		"valid, unknown fields":   {body: strings.NewReader(strings.Replace(good, `"request":{`, `"future":1,"request":{"future":{},`, 1)), wantStatus: 200},
		"valid, not a pod":        {body: strings.NewReader(review(`[1]`)), wantStatus: 200},
		"valid, no object":        {body: strings.NewReader(review(`null`)), wantStatus: 200},
		"object of invalid UTF-8": {body: strings.NewReader(review(`{"metadata":{"name":"` + "\xff\xfe" + `"}}`)), wantStatus: 200},
		"as large as allowed":     {body: strings.NewReader(good + strings.Repeat(" ", maxBodyBytes-len(good))), wantStatus: 200},

		"too large":              {body: strings.NewReader(good + strings.Repeat(" ", maxBodyBytes-len(good)+1)), wantStatus: 413},
		"endless":                {body: endless{}, wantStatus: 413},
		"no body":                {body: http.NoBody, wantStatus: 400},
		"a brace":                {body: strings.NewReader(`{`), wantStatus: 400},
		"empty object":           {body: strings.NewReader(`{}`), wantStatus: 400},
		"null":                   {body: strings.NewReader(`null`), wantStatus: 400},
		"list":                   {body: strings.NewReader(`[` + good + `]`), wantStatus: 400},
		"reader fails":           {body: iotest.ErrReader(errors.New("connection reset")), wantStatus: 400},
		"reader fails midway":    {body: io.MultiReader(strings.NewReader(good[:100]), iotest.ErrReader(io.ErrUnexpectedEOF)), wantStatus: 400},
		"reader times out":       {body: iotest.TimeoutReader(iotest.HalfReader(strings.NewReader(good))), wantStatus: 400},
		"trailing garbage":       {body: strings.NewReader(good + `x`), wantStatus: 400},
		"two reviews":            {body: strings.NewReader(good + good), wantStatus: 400},
		"nested too deep":        {body: strings.NewReader(review(strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000))), wantStatus: 400},
		"nested and cut off":     {body: strings.NewReader(strings.Repeat(`[`, 1_000_000)), wantStatus: 400},
		"NUL bytes":              {body: bytes.NewReader(make([]byte, 1000)), wantStatus: 400},
		"byte order mark":        {body: strings.NewReader("\xef\xbb\xbf" + good), wantStatus: 400},
		"v1beta1":                {body: strings.NewReader(strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1)), wantStatus: 400},
		"other group":            {body: strings.NewReader(strings.Replace(good, "admission.k8s.io/v1", "v1", 1)), wantStatus: 400},
		"other kind":             {body: strings.NewReader(strings.Replace(good, "AdmissionReview", "Pod", 1)), wantStatus: 400},
		"keys of another case":   {body: strings.NewReader(strings.ReplaceAll(good, `"request"`, `"Request"`)), wantStatus: 400},
		"request is null":        {body: strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`), wantStatus: 400},
		"request is a list":      {body: strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":[]}`), wantStatus: 400},
		"no UID":                 {body: strings.NewReader(strings.Replace(good, `"uid":"u"`, `"uid":""`, 1)), wantStatus: 400},
		"only a response":        {body: strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":false}}`), wantStatus: 400},
		"text/plain":             {body: strings.NewReader(good), contentType: "text/plain", wantStatus: 415},
		"YAML":                   {body: strings.NewReader(good), contentType: "application/yaml", wantStatus: 415},
		"protobuf":               {body: strings.NewReader(good), contentType: "application/vnd.kubernetes.protobuf", wantStatus: 415},
		"no content type":        {body: strings.NewReader(good), contentType: "-", wantStatus: 415},
		"malformed content type": {body: strings.NewReader(good), contentType: "application/json; =", wantStatus: 415},
		"GET":                    {body: http.NoBody, method: http.MethodGet, wantStatus: 405},
		"PUT":                    {body: strings.NewReader(good), method: http.MethodPut, wantStatus: 405},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bed := newBed(t, config.Default(), []string{"team-a"}, goldenCluster(t, "mixed")...)
			server := NewServer(bed.Handler, bed.metrics, bed.log.logger(), 1, time.Minute)
			r := httptest.NewRequestWithContext(t.Context(), cmpOr(tc.method, http.MethodPost), config.WebhookPath, tc.body)
			if ct := cmpOr(tc.contentType, "application/json"); ct != "-" {
				r.Header.Set("Content-Type", ct)
			}
			recorder := httptest.NewRecorder()
			server.ServeHTTP(recorder, r)
			if recorder.Code != tc.wantStatus {
				t.Errorf("status %d, want %d: %s", recorder.Code, tc.wantStatus, recorder.Body)
			}
			checkHTTPAnswer(t, recorder, "u")
			wantInvalid := 1.0
			if tc.wantStatus == 200 {
				wantInvalid = 0
			}
			if got := testutil.ToFloat64(bed.metrics.invalid); got != wantInvalid {
				t.Errorf("%v requests counted as invalid, want %v", got, wantInvalid)
			}
			if len(server.slots) != 0 {
				t.Error("the slot was not returned")
			}
		})
	}
}

func cmpOr(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// checkHTTPAnswer checks that an answer is either a failed call, which
// failurePolicy Ignore covers, or an allowing review; it returns the latter.
func checkHTTPAnswer(t testing.TB, recorder *httptest.ResponseRecorder, uid string) *admissionv1.AdmissionReview {
	t.Helper()
	if recorder.Code != http.StatusOK {
		if recorder.Code < 400 || bytes.Contains(recorder.Body.Bytes(), []byte("allowed")) {
			t.Fatalf("status %d: %s", recorder.Code, recorder.Body)
		}
		return nil
	}
	answer := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(recorder.Body.Bytes(), answer); err != nil {
		t.Fatalf("answer is not JSON: %v\n%s", err, recorder.Body)
	}
	if answer.APIVersion != "admission.k8s.io/v1" || answer.Kind != "AdmissionReview" || answer.Request != nil || answer.Response == nil {
		t.Fatalf("answer is not a review: %s", recorder.Body)
	}
	if !answer.Response.Allowed || string(answer.Response.UID) != uid {
		t.Fatalf("answer for %q, want an allowing one for %q: %s", answer.Response.UID, uid, recorder.Body)
	}
	if ct := recorder.Header().Get("Content-Type"); ct != "application/json" {
		t.Errorf("content type %q", ct)
	}
	return answer
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// A body without an end costs no more memory than a large one.
func TestEndlessBodyIsBounded(t *testing.T) {
	bed := handlerWith(t, nil)
	server := NewServer(allowing{}, bed.metrics, bed.log.logger(), 1, time.Minute)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, config.WebhookPath, endless{})
	r.Header.Set("Content-Type", "application/json")
	server.ServeHTTP(httptest.NewRecorder(), r)
	runtime.ReadMemStats(&after)
	// io.ReadAll grows its buffer by a quarter at a time: all buffers together
	// are some 5 times the last, and that is at most a quarter over the limit.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8*maxBodyBytes {
		t.Errorf("allocated %d bytes for a body limited to %d", allocated, maxBodyBytes)
	}
}

// A panic outside of the handler's own recovery is a failed call.
func TestServeHTTPPanic(t *testing.T) {
	bed := handlerWith(t, nil)
	server := NewServer(panicking{}, bed.metrics, bed.log.logger(), 1, time.Minute)
	for range 3 { // more than there are slots
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, post(t, review(gpuPod)))
		if recorder.Code != http.StatusInternalServerError {
			t.Errorf("status %d: %s", recorder.Code, recorder.Body)
		}
	}
	if !strings.Contains(bed.log.text(), "Request ended by a panic") {
		t.Errorf("the panic is not in the log: %s", bed.log.text())
	}
}
