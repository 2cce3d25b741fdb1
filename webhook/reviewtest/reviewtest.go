// Package reviewtest posts AdmissionReviews as the API server does, and checks the answers,
// for the tests of the rooms of webhook. It is no part of the product.
package reviewtest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Timeout ends tests that wait for something that does not happen.
const Timeout = 30 * time.Second

// Pod is a pod that asks for one GPU and nothing else, as JSON.
const Pod = `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`

// Review wraps an object into the review of its creation, with UID "u".
func Review(object string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"team-a",` +
		`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"object":` + object + `}}`
}

// ReplaceUID gives a review of the function Review another UID.
func ReplaceUID(review, uid string) string {
	return strings.Replace(review, `"uid":"u"`, `"uid":"`+uid+`"`, 1)
}

// Post is the API server's HTTP request with the body.
func Post(t testing.TB, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, config.WebhookPath, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// Serve posts a body and returns the status of the answer.
func Serve(t testing.TB, handler http.Handler, body string) int {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, Post(t, body))
	return recorder.Code
}

// CheckAnswer checks that an answer is either a failed call, which failurePolicy
// Ignore covers, or an allowing review; it returns the latter.
func CheckAnswer(t testing.TB, recorder *httptest.ResponseRecorder, uid string) *admissionv1.AdmissionReview {
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

// WaitUntil waits for a condition, and ends the test if it does not come.
func WaitUntil(t testing.TB, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, Timeout, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// Log collects log lines of every level. It is safe for parallel use.
type Log struct {
	mu    sync.Mutex // guards lines
	lines []string
}

// Logger returns the logger whose lines are collected.
func (l *Log) Logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, prefix+" "+args)
	}, funcr.Options{Verbosity: 10})
}

// Text returns all lines.
func (l *Log) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// Forget drops all lines.
func (l *Log) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = nil
}
