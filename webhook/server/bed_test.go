package server

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

// testBed is a server with what it counts and logs.
type testBed struct {
	*Server
	registry *prometheus.Registry
	log      *reviewtest.Log
}

func newBed(handler admission.Handler, limit int, timeout time.Duration) *testBed {
	bed := &testBed{registry: prometheus.NewRegistry(), log: &reviewtest.Log{}}
	bed.Server = New(handler, metrics.New(bed.registry), bed.log.Logger(), limit, timeout)
	return bed
}

// counted returns the value of a counter without labels.
func (b *testBed) counted(t *testing.T, name string) float64 {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// isFree tells whether all memory and all slots are free.
func (b *testBed) isFree() bool {
	if !b.memory.small.TryAcquire(smallBudget) {
		return false
	}
	defer b.memory.small.Release(smallBudget)
	if !b.memory.large.TryAcquire(largeBudget) {
		return false
	}
	defer b.memory.large.Release(largeBudget)
	return len(b.slots) == 0
}

// allowing is a handler that allows everything.
type allowing struct{}

func (allowing) Handle(_ context.Context, r admission.Request) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{UID: r.UID, Allowed: true}}
}

// panicking is a handler that panics.
type panicking struct{}

func (panicking) Handle(_ context.Context, r admission.Request) admission.Response { panic(r) }

// blocking is a handler that tells when it was entered and waits to be released.
type blocking struct {
	entered, release chan struct{}
}

func newBlocking() blocking {
	return blocking{entered: make(chan struct{}), release: make(chan struct{})}
}

func (b blocking) Handle(ctx context.Context, r admission.Request) admission.Response {
	b.entered <- struct{}{}
	<-b.release
	return allowing{}.Handle(ctx, r)
}

// late is a handler that answers while it goes on until it is released.
type late struct{ release chan struct{} }

func (l late) Handle(ctx context.Context, r admission.Request) admission.Response {
	work := WorkOf(ctx)
	work.Begin()
	go func() {
		defer work.End()
		<-l.release
	}()
	return allowing{}.Handle(ctx, r)
}
