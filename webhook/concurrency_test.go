package webhook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// blocking is a handler that tells when it was entered and waits to be released.
type blocking struct {
	entered, release chan struct{}
}

func (b blocking) Handle(ctx context.Context, r admission.Request) admission.Response {
	b.entered <- struct{}{}
	<-b.release
	return allowing{}.Handle(ctx, r)
}

func TestConcurrencyLimit(t *testing.T) {
	bed := handlerWith(t, nil)
	handler := blocking{entered: make(chan struct{}), release: make(chan struct{})}
	const limit = 2
	server := NewServer(handler, bed.metrics, bed.log.logger(), limit, time.Millisecond)
	serve := func(ctx context.Context) *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, post(t, review(gpuPod)).WithContext(ctx))
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
	if got := testutil.ToFloat64(bed.metrics.busy); got != 2 {
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

// Requests in parallel never take more than there is: four pods for one node
// with room for three, and the fourth learns that nothing fits.
func TestParallelAdmissions(t *testing.T) {
	const room = 3
	for range 20 {
		bed := bedWithRoom(t, room)
		server := NewServer(bed.Handler, bed.metrics, bed.log.logger(), 64, time.Minute)
		var running sync.WaitGroup
		for i := range room + 1 {
			running.Go(func() {
				recorder := httptest.NewRecorder()
				uid := string(rune('a' + i))
				body := review(gpuPod)
				server.ServeHTTP(recorder, post(t, replaceUID(body, uid)))
				checkHTTPAnswer(t, recorder, uid)
			})
		}
		running.Wait()
		counts := decisions(t, bed.registry)
		if counts["ranked//false"] != room || counts["late/NothingFits/false"] != 1 {
			t.Fatalf("decisions %v, want %d ranked and one late", counts, room)
		}
	}
}
