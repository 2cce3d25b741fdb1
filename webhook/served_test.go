package webhook

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/server"
)

// Objects that are no pods, and no objects, are the API server's matter: they are allowed.
func TestServedObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		object  string
		patched bool
	}{
		"a pod":           {gpuPod, true},
		"a list":          {`[1]`, false},
		"no object":       {`null`, false},
		"invalid UTF-8":   {`{"metadata":{"name":"` + "\xff\xfe" + `"}}`, false},
		"not even a name": {`{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			bed := bedWithRoom(t, 1)
			reviews := server.New(bed.Handler, bed.requests, bed.log.Logger(), 1, time.Minute)
			recorder := httptest.NewRecorder()
			reviews.ServeHTTP(recorder, reviewtest.Post(t, reviewtest.Review(tc.object)))
			answer := reviewtest.CheckAnswer(t, recorder, "u")
			if answer == nil || (answer.Response.Patch != nil) != tc.patched {
				t.Errorf("status %d: %s", recorder.Code, recorder.Body)
			}
		})
	}
}

// The answer is due and the decision goes on: it keeps its slot, so that decisions that
// never end do not become more and more.
func TestLateDecisionsKeepTheirSlots(t *testing.T) {
	var deciding atomic.Int64
	release := make(chan struct{})
	bed := handlerWith(t, deciderFunc(func(scoring.Request) scoring.Decision {
		deciding.Add(1)
		<-release
		return ranked("g1")
	}))
	bed.cfg.Server.DecisionTimeout = metav1.Duration{Duration: time.Millisecond}
	const limit = 3
	reviews := server.New(bed.Handler, bed.requests, bed.log.Logger(), limit, 50*time.Millisecond)
	serve := func() int { return reviewtest.Serve(t, reviews, reviewtest.Review(gpuPod)) }
	for range limit {
		if status := serve(); status != http.StatusOK {
			t.Errorf("status %d while there are slots", status)
		}
	}
	for range 2 * limit {
		if status := serve(); status != http.StatusServiceUnavailable {
			t.Errorf("status %d without a slot", status)
		}
	}
	if got := deciding.Load(); got != limit {
		t.Errorf("%d decisions under way, want %d", got, limit)
	}
	close(release)
	reviewtest.WaitUntil(t, "there is a slot again", func() bool { return serve() == http.StatusOK })
}

// A decision that panics after its answer gives back its slot as well.
func TestLatePanicGivesItsSlotBack(t *testing.T) {
	release := make(chan struct{})
	bed := handlerWith(t, deciderFunc(func(scoring.Request) scoring.Decision {
		<-release
		panic("late")
	}))
	bed.cfg.Server.DecisionTimeout = metav1.Duration{Duration: time.Millisecond}
	reviews := server.New(bed.Handler, bed.requests, bed.log.Logger(), 1, 50*time.Millisecond)
	serve := func() int { return reviewtest.Serve(t, reviews, reviewtest.Review(gpuPod)) }
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		if status := serve(); status != want {
			t.Errorf("status %d, want %d", status, want)
		}
	}
	close(release)
	reviewtest.WaitUntil(t, "there is a slot again", func() bool { return serve() == http.StatusOK })
}

// Requests in parallel never take more than there is: four pods for one node
// with room for three, and the fourth learns that nothing fits.
func TestParallelAdmissions(t *testing.T) {
	const room = 3
	for range 20 {
		bed := bedWithRoom(t, room)
		reviews := server.New(bed.Handler, bed.requests, bed.log.Logger(), 64, time.Minute)
		var running sync.WaitGroup
		for i := range room + 1 {
			running.Go(func() {
				recorder := httptest.NewRecorder()
				uid := string(rune('a' + i))
				body := reviewtest.Review(gpuPod)
				reviews.ServeHTTP(recorder, reviewtest.Post(t, reviewtest.ReplaceUID(body, uid)))
				reviewtest.CheckAnswer(t, recorder, uid)
			})
		}
		running.Wait()
		counts := decisions(t, bed.registry)
		if counts["ranked//false"] != room || counts["late/NothingFits/false"] != 1 {
			t.Fatalf("decisions %v, want %d ranked and one late", counts, room)
		}
	}
}
