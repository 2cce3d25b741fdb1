package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// elements is a review whose object has so many more list elements than a usual one.
func elements(n int) string { return review(`{"x":[0` + strings.Repeat(",0", n) + `]}`) }

// serveBody returns the status of the answer to a body.
func serveBody(t *testing.T, server *Server, body string) int {
	t.Helper()
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, post(t, body))
	return recorder.Code
}

// isFree tells whether all memory and all slots of a server are free.
func isFree(s *Server) bool {
	if !s.memory.small.TryAcquire(smallBudget) {
		return false
	}
	defer s.memory.small.Release(smallBudget)
	if !s.memory.large.TryAcquire(largeBudget) {
		return false
	}
	defer s.memory.large.Release(largeBudget)
	return len(s.slots) == 0
}

// JSON of a few bytes can decode to a thousand times as much. Bodies that could
// are refused before they are decoded, and others wait for one another.
func TestMemoryBudget(t *testing.T) {
	bed := handlerWith(t, nil)
	handler := blocking{entered: make(chan struct{}), release: make(chan struct{})}
	server := NewServer(handler, bed.metrics, bed.log.logger(), 64, time.Hour)
	if status := serveBody(t, server, elements(maxMemory/bytesPerElement)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d for a body with too many elements", status)
	}
	large := elements(maxMemory/bytesPerElement - 1000)
	if size := estimate([]byte(large)); size > maxMemory || 2*size < largeBudget {
		t.Fatalf("a body of estimate %d is no test", size)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if status := serveBody(t, server, large); status != http.StatusOK {
			t.Errorf("status %d within the budget", status)
		}
	})
	<-handler.entered
	// The budget is used up: another one is turned away when its time is over.
	server.timeout = time.Millisecond
	if status := serveBody(t, server, large); status != http.StatusServiceUnavailable {
		t.Errorf("status %d over the budget, want 503", status)
	}
	close(handler.release)
	running.Wait()
	if !isFree(server) {
		t.Error("memory was not returned")
	}
	if got := testutil.ToFloat64(bed.metrics.busy); got != 1 {
		t.Errorf("%v requests counted as busy, want 1", got)
	}
}

// silent is a body that sends nothing until its time is over.
type silent struct {
	ctx   context.Context
	reads *atomic.Int64
}

func (s silent) Read([]byte) (int, error) {
	s.reads.Add(1)
	<-s.ctx.Done()
	return 0, errors.New("nothing came")
}

// A request has its memory before its body is read: many that only say how much they will
// send get no more than there is.
func TestMemoryBeforeBody(t *testing.T) {
	bed := handlerWith(t, nil)
	server := NewServer(allowing{}, bed.metrics, bed.log.logger(), 64, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	var reads atomic.Int64
	var running sync.WaitGroup
	send := func(length int64) {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, config.WebhookPath, silent{ctx, &reads})
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = length
		running.Go(func() { server.ServeHTTP(httptest.NewRecorder(), r) })
	}
	const large, small = 10, 100
	for range large {
		send(maxBodyBytes)
	}
	for range small {
		send(smallBody)
	}
	// 64 MiB are one share of 64 MiB, and 32 MiB are 8 of 4 MiB.
	const held = largeBudget/maxMemory + smallBudget/smallMemory
	waitUntil(t, "all that have memory read", func() bool { return reads.Load() == held })
	if server.memory.large.TryAcquire(maxMemory) || server.memory.small.TryAcquire(smallMemory) {
		t.Errorf("%d bodies are read and there is memory for more", held)
	}
	cancel()
	running.Wait()
	if got := reads.Load(); got != held || !isFree(server) {
		t.Errorf("%d bodies were read, want %d; all is free: %v", got, held, isFree(server))
	}
	// One that says that it is too long is not read at all.
	r := post(t, "")
	r.Body, r.ContentLength = io.NopCloser(silent{t.Context(), &reads}), maxBodyBytes+1
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, r)
	if recorder.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d for a body of %d bytes", recorder.Code, r.ContentLength)
	}
}

// While large requests wait for one another, small ones are served: a usual pod 64 times
// at once.
func TestSmallRequestsPassLargeOnes(t *testing.T) {
	bed := handlerWith(t, nil)
	handler := blocking{entered: make(chan struct{}), release: make(chan struct{})}
	server := NewServer(handler, bed.metrics, bed.log.logger(), 80, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	send := func(body string) {
		running.Go(func() { server.ServeHTTP(httptest.NewRecorder(), post(t, body).WithContext(ctx)) })
	}
	large := elements(maxMemory/bytesPerElement - 1000)
	send(large)
	<-handler.entered
	for range 10 {
		send(large)
	}
	dense := elements(smallBody / 4) // small, but not to decode
	if len(dense) > smallBody || estimate([]byte(dense)) <= smallMemory {
		t.Fatalf("a body of %d bytes, estimate %d, is no test", len(dense), estimate([]byte(dense)))
	}
	for range 10 {
		send(dense)
	}
	usual, err := os.ReadFile("testdata/trainer.json")
	if err != nil {
		t.Fatal(err)
	}
	small := review(string(usual) + strings.Repeat(" ", 6000)) // as an API server sends it, with its managed fields
	const together = 64
	for range together {
		send(small)
	}
	for range together {
		<-handler.entered // and no other one
	}
	if got := len(server.slots); got != together+1 {
		t.Errorf("%d requests are decided, want the %d small ones and the first large one", got, together)
	}
	cancel()
	close(handler.release)
	running.Wait()
	if !isFree(server) {
		t.Error("not all was returned")
	}
}

// What the body says about its length only decides what it has to wait for.
func TestShareOfMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		length, needed   int64
		claimed, held    int64
		large, heldLarge bool
	}{
		"a usual pod":            {length: 10_000, needed: 470_000, claimed: 640_000, held: 470_000},
		"nearly nothing":         {length: 2, needed: 6, claimed: leastMemory, held: leastMemory},
		"a dense one":            {length: 10_000, needed: 2_000_000, claimed: 640_000, held: 2_000_000},
		"the largest small one":  {length: smallBody, needed: smallMemory, claimed: smallMemory, held: smallMemory},
		"small, large to decode": {length: smallBody, needed: smallMemory + 1, claimed: smallMemory, held: smallMemory + 1, heldLarge: true},
		"a byte larger":          {length: smallBody + 1, needed: 1_000_000, claimed: smallMemory + bytesPerByte, held: 1_000_000, large: true, heldLarge: true},
		"the largest":            {length: maxBodyBytes, needed: maxMemory, claimed: maxMemory, held: maxMemory, large: true, heldLarge: true},
		"of unknown length":      {length: -1, needed: 470_000, claimed: smallMemory, held: 470_000},
		"unknown, and large":     {length: -1, needed: maxMemory, claimed: smallMemory, held: maxMemory, heldLarge: true},
	} {
		m := newMemory()
		s, err := m.claim(t.Context(), tc.length)
		if err != nil || s.bytes != tc.claimed || (s.of == m.large) != tc.large {
			t.Errorf("%s: claimed %+v, %v", name, s, err)
		}
		if err := m.correct(t.Context(), &s, tc.needed); err != nil || s.bytes != tc.held || (s.of == m.large) != tc.heldLarge {
			t.Errorf("%s: corrected to %+v, %v", name, s, err)
		}
		s.release()
		if !m.small.TryAcquire(smallBudget) || !m.large.TryAcquire(largeBudget) {
			t.Errorf("%s: not all was returned", name)
		}
	}
}

// A body of unknown length may be as large as any, and costs no more than it has.
func TestBodyOfUnknownLength(t *testing.T) {
	bed := handlerWith(t, nil)
	server := NewServer(allowing{}, bed.metrics, bed.log.logger(), 4, time.Minute)
	for _, length := range []int{1000, smallBody - 1, smallBody, smallBody + 1, maxBodyBytes} {
		good := review(gpuPod)
		body := good + strings.Repeat(" ", max(length-len(good), 0))
		r := post(t, "")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, r)
		if recorder.Code != http.StatusOK {
			t.Errorf("%d bytes: status %d: %s", len(body), recorder.Code, recorder.Body)
		}
	}
	if !isFree(server) {
		t.Error("not all was returned")
	}
}

// The answer is due and the decision goes on: it keeps its slot and its memory, so that
// decisions that never end do not become more and more.
func TestWorkOutlivesItsAnswer(t *testing.T) {
	var deciding atomic.Int64
	release := make(chan struct{})
	bed := handlerWith(t, deciderFunc(func(scoring.Request) scoring.Decision {
		deciding.Add(1)
		<-release
		return ranked("g1")
	}))
	bed.cfg.Server.DecisionTimeout = metav1.Duration{Duration: time.Millisecond}
	const limit = 3
	server := NewServer(bed.Handler, bed.metrics, bed.log.logger(), limit, 50*time.Millisecond)
	for range limit {
		if status := serveBody(t, server, review(gpuPod)); status != http.StatusOK {
			t.Errorf("status %d while there are slots", status)
		}
	}
	for range 2 * limit {
		if status := serveBody(t, server, review(gpuPod)); status != http.StatusServiceUnavailable {
			t.Errorf("status %d without a slot", status)
		}
	}
	if deciding.Load() != limit || len(server.slots) != limit || server.memory.small.TryAcquire(smallBudget-limit*leastMemory+1) {
		t.Errorf("%d decisions under way with %d slots, want %d, and memory for each", deciding.Load(), len(server.slots), limit)
	}
	close(release)
	waitUntil(t, "all is free again", func() bool { return isFree(server) })
	bed.cfg.Server.DecisionTimeout = metav1.Duration{Duration: time.Minute}
	server.timeout = time.Minute
	if status := serveBody(t, server, review(gpuPod)); status != http.StatusOK || !isFree(server) {
		t.Errorf("status %d afterwards; all is free: %v", status, isFree(server))
	}
}

// A decision that panics after its answer gives back what it held as well.
func TestWorkEndsWithAPanic(t *testing.T) {
	release := make(chan struct{})
	bed := handlerWith(t, deciderFunc(func(scoring.Request) scoring.Decision {
		<-release
		panic("late")
	}))
	bed.cfg.Server.DecisionTimeout = metav1.Duration{Duration: time.Millisecond}
	server := NewServer(bed.Handler, bed.metrics, bed.log.logger(), 1, time.Minute)
	if status := serveBody(t, server, review(gpuPod)); status != http.StatusOK || len(server.slots) != 1 {
		t.Errorf("status %d, %d slots held", status, len(server.slots))
	}
	close(release)
	waitUntil(t, "all is free again", func() bool { return isFree(server) })
}

// What a reservation keeps of a request is bounded.
func TestReviewsWithLongNames(t *testing.T) {
	bed := handlerWith(t, nil)
	server := NewServer(allowing{}, bed.metrics, bed.log.logger(), 1, time.Minute)
	long := strings.Repeat("x", maxReviewUID)
	namespace := strings.Repeat("n", maxNamespace)
	for body, want := range map[string]int{
		replaceUID(review(gpuPod), long):                                 http.StatusOK,
		replaceUID(review(gpuPod), long+"x"):                             http.StatusBadRequest,
		strings.Replace(review(gpuPod), "team-a", namespace, 1):          http.StatusOK,
		strings.Replace(review(gpuPod), "team-a", namespace+"namely", 1): http.StatusBadRequest,
	} {
		if status := serveBody(t, server, body); status != want {
			t.Errorf("status %d, want %d for %.200s", status, want, body)
		}
	}
}
