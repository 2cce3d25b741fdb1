package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

func TestConcurrencyLimit(t *testing.T) {
	handler := newBlocking()
	const limit = 2
	server := newBed(handler, limit, time.Millisecond)
	serve := func(ctx context.Context) *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, reviewtest.Post(t, reviewtest.Review(reviewtest.Pod)).WithContext(ctx))
		return recorder
	}

	var running sync.WaitGroup
	for range limit {
		running.Go(func() {
			if recorder := serve(t.Context()); recorder.Code != http.StatusOK {
				t.Errorf("status %d within the limit", recorder.Code)
			}
		})
		<-handler.entered
	}
	// All slots are taken: turned away after the wait.
	if recorder := serve(t.Context()); recorder.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d over the limit, want 503", recorder.Code)
	}
	// A caller that gave up is not waited for.
	server.timeout = time.Hour
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if recorder := serve(canceled); recorder.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d for a canceled request, want 503", recorder.Code)
	}
	if got := server.counted(t, "gpu_binpacker_busy_requests_total"); got != 2 {
		t.Errorf("%v requests counted as busy, want 2", got)
	}
	// One that waits gets the first slot that is returned.
	running.Go(func() {
		if recorder := serve(t.Context()); recorder.Code != http.StatusOK {
			t.Errorf("status %d after waiting", recorder.Code)
		}
	})
	handler.release <- struct{}{}
	<-handler.entered
	close(handler.release)
	running.Wait()
	if len(server.slots) != 0 {
		t.Errorf("%d slots were not returned", len(server.slots))
	}
}

// A handler that answers and goes on keeps the slot and the memory of its request, so that
// what never ends does not become more and more.
func TestWorkOutlivesItsAnswer(t *testing.T) {
	handler := late{release: make(chan struct{})}
	const limit = 3
	server := newBed(handler, limit, 50*time.Millisecond)
	for range limit {
		if status := reviewtest.Serve(t, server, reviewtest.Review(reviewtest.Pod)); status != http.StatusOK {
			t.Errorf("status %d while there are slots", status)
		}
	}
	for range 2 * limit {
		if status := reviewtest.Serve(t, server, reviewtest.Review(reviewtest.Pod)); status != http.StatusServiceUnavailable {
			t.Errorf("status %d without a slot", status)
		}
	}
	if len(server.slots) != limit || server.memory.small.TryAcquire(smallBudget-limit*leastMemory+1) {
		t.Errorf("%d slots are held, want %d, and memory for each", len(server.slots), limit)
	}
	close(handler.release)
	reviewtest.WaitUntil(t, "all is free again", server.isFree)
}

// What did not come over HTTP holds nothing.
func TestNoWork(t *testing.T) {
	work := WorkOf(t.Context())
	work.Begin()
	work.End()
	if work != nil {
		t.Errorf("%+v", work)
	}
}
