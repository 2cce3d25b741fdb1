package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

func TestServeHTTP(t *testing.T) {
	good := reviewtest.Review(reviewtest.Pod)
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
		"valid, not a pod":        {body: strings.NewReader(reviewtest.Review(`[1]`)), wantStatus: 200},
		"valid, no object":        {body: strings.NewReader(reviewtest.Review(`null`)), wantStatus: 200},
		"object of invalid UTF-8": {body: strings.NewReader(reviewtest.Review(`{"metadata":{"name":"` + "\xff\xfe" + `"}}`)), wantStatus: 200},
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
		"nested too deep":        {body: strings.NewReader(reviewtest.Review(strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000))), wantStatus: 400},
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
			server := newBed(allowing{}, 1, time.Minute)
			r := httptest.NewRequestWithContext(t.Context(), cmpOr(tc.method, http.MethodPost), config.WebhookPath, tc.body)
			if ct := cmpOr(tc.contentType, "application/json"); ct != "-" {
				r.Header.Set("Content-Type", ct)
			}
			recorder := httptest.NewRecorder()
			server.ServeHTTP(recorder, r)
			if recorder.Code != tc.wantStatus {
				t.Errorf("status %d, want %d: %s", recorder.Code, tc.wantStatus, recorder.Body)
			}
			reviewtest.CheckAnswer(t, recorder, "u")
			wantInvalid := 1.0
			if tc.wantStatus == 200 {
				wantInvalid = 0
			}
			if got := server.counted(t, "gpu_binpacker_invalid_requests_total"); got != wantInvalid {
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
	server := newBed(allowing{}, 1, time.Minute)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, config.WebhookPath, endless{})
	r.Header.Set("Content-Type", "application/json")
	server.ServeHTTP(httptest.NewRecorder(), r)
	runtime.ReadMemStats(&after)
	// A buffer is twice as large each time: the last is at most twice the limit, and all
	// together are twice the last. The race detector has each made twice.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 10*maxBodyBytes {
		t.Errorf("allocated %d bytes for a body limited to %d", allocated, maxBodyBytes)
	}
}

// A panic outside of the handler's own recovery is a failed call.
func TestServeHTTPPanic(t *testing.T) {
	server := newBed(panicking{}, 1, time.Minute)
	for range 3 { // more than there are slots
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, reviewtest.Post(t, reviewtest.Review(reviewtest.Pod)))
		if recorder.Code != http.StatusInternalServerError {
			t.Errorf("status %d: %s", recorder.Code, recorder.Body)
		}
	}
	if !strings.Contains(server.log.Text(), "Request ended by a panic") {
		t.Errorf("the panic is not in the log: %s", server.log.Text())
	}
}

// No part of a request is ever logged, at any level, when it does not reach the handler, or
// when the handler panics with it.
func TestHTTPLogHoldsNoSecret(t *testing.T) {
	const canary = "canary-7f3a91c2" // stands for a secret
	const object = `{"metadata":{"name":"` + canary + `"},"spec":{"containers":[{"env":[{"name":"PASSWORD","value":"` + canary + `"}]}]}}`
	bodies := map[string]string{
		"text":           canary,
		"cut off":        `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":` + object,
		"other version":  `{"apiVersion":"` + canary + `","kind":"AdmissionReview","request":{"uid":"u","object":` + object + `}}`,
		"wrong type":     `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":["` + canary + `"]}}`,
		"handler panics": `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":` + object + `}}`,
		"too large":      `{"` + canary + `":"` + strings.Repeat("x", maxBodyBytes) + `"}`,
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			server := newBed(panicking{}, 1, time.Minute)
			recorder := httptest.NewRecorder()
			server.ServeHTTP(recorder, reviewtest.Post(t, body))
			if recorder.Code < 300 {
				t.Errorf("status %d", recorder.Code)
			}
			if strings.Contains(recorder.Body.String(), canary) {
				t.Errorf("the answer repeats what it got: %s", recorder.Body)
			}
			if text := server.log.Text(); text == "" || strings.Contains(text, canary) || strings.Contains(text, "PASSWORD") {
				t.Errorf("the log is empty or holds a part of the request:\n%s", text)
			}
		})
	}
}
