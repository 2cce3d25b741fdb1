package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

// elements is a review whose object has so many more list elements than a usual one.
func elements(n int) string { return reviewtest.Review(`{"x":[0` + strings.Repeat(",0", n) + `]}`) }

// JSON of a few bytes can decode to a thousand times as much. Bodies that could
// are refused before they are decoded, and others wait for one another.
func TestMemoryBudget(t *testing.T) {
	handler := newBlocking()
	server := newBed(handler, 64, time.Hour)
	if status := reviewtest.Serve(t, server, elements(maxMemory/bytesPerElement)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d for a body with too many elements", status)
	}
	large := elements(maxMemory/bytesPerElement - 1000)
	if size := estimate([]byte(large)); size > maxMemory || 2*size < largeBudget {
		t.Fatalf("a body of estimate %d is no test", size)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if status := reviewtest.Serve(t, server, large); status != http.StatusOK {
			t.Errorf("status %d within the budget", status)
		}
	})
	<-handler.entered
	// The budget is used up: another one is turned away when its time is over.
	server.timeout = time.Millisecond
	if status := reviewtest.Serve(t, server, large); status != http.StatusServiceUnavailable {
		t.Errorf("status %d over the budget, want 503", status)
	}
	close(handler.release)
	running.Wait()
	if !server.isFree() {
		t.Error("memory was not returned")
	}
	if got := server.counted(t, "gpu_binpacker_busy_requests_total"); got != 1 {
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
	server := newBed(allowing{}, 64, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	sending, end := context.WithCancel(t.Context())
	var reads atomic.Int64
	var running sync.WaitGroup
	send := func(length int64) {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, config.WebhookPath, silent{sending, &reads})
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
	reviewtest.WaitUntil(t, "all that have memory read", func() bool { return reads.Load() == held })
	if server.memory.large.TryAcquire(maxMemory) || server.memory.small.TryAcquire(smallMemory) {
		t.Errorf("%d bodies are read and there is memory for more", held)
	}
	cancel()
	end() // later, or requests that wait could get what others give back
	running.Wait()
	if got := reads.Load(); got != held || !server.isFree() {
		t.Errorf("%d bodies were read, want %d; all is free: %v", got, held, server.isFree())
	}
	// One that says that it is too long is not read at all.
	r := reviewtest.Post(t, "")
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
	handler := newBlocking()
	server := newBed(handler, 80, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	send := func(body string) {
		running.Go(func() { server.ServeHTTP(httptest.NewRecorder(), reviewtest.Post(t, body).WithContext(ctx)) })
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
	usual, err := os.ReadFile(filepath.Join("..", "testdata", "trainer.json"))
	if err != nil {
		t.Fatal(err)
	}
	small := reviewtest.Review(string(usual) + strings.Repeat(" ", 6000)) // as an API server sends it, with its managed fields
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
	if !server.isFree() {
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
	server := newBed(allowing{}, 4, time.Minute)
	for _, length := range []int{1000, smallBody - 1, smallBody, smallBody + 1, maxBodyBytes} {
		good := reviewtest.Review(reviewtest.Pod)
		body := good + strings.Repeat(" ", max(length-len(good), 0))
		r := reviewtest.Post(t, "")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, r)
		if recorder.Code != http.StatusOK {
			t.Errorf("%d bytes: status %d: %s", len(body), recorder.Code, recorder.Body)
		}
	}
	if !server.isFree() {
		t.Error("not all was returned")
	}
}

// What a reservation keeps of a request is bounded.
func TestReviewsWithLongNames(t *testing.T) {
	server := newBed(allowing{}, 1, time.Minute)
	long := strings.Repeat("x", maxReviewUID)
	namespace := strings.Repeat("n", maxNamespace)
	for body, want := range map[string]int{
		reviewtest.ReplaceUID(reviewtest.Review(reviewtest.Pod), long):                      http.StatusOK,
		reviewtest.ReplaceUID(reviewtest.Review(reviewtest.Pod), long+"x"):                  http.StatusBadRequest,
		strings.Replace(reviewtest.Review(reviewtest.Pod), "team-a", namespace, 1):          http.StatusOK,
		strings.Replace(reviewtest.Review(reviewtest.Pod), "team-a", namespace+"namely", 1): http.StatusBadRequest,
	} {
		if status := reviewtest.Serve(t, server, body); status != want {
			t.Errorf("status %d, want %d for %.200s", status, want, body)
		}
	}
}
