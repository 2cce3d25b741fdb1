package faults

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/podstream"
)

// stream are the pods that are created meanwhile.
type stream struct{ *podstream.Stream }

// startStream starts to create pods until Stop. ctx limits the whole.
func startStream(ctx context.Context, c client.Client, namespace string, perSecond int) *stream {
	return &stream{podstream.Start(ctx, podstream.Options{Client: c, Namespace: namespace, PerSecond: perSecond})}
}

// unsteeredSince is how many pods were created without steering.
func (s *stream) unsteeredSince(moment time.Time) int {
	unsteered := 0
	for _, c := range s.Since(moment) {
		if c.Steering == "" {
			unsteered++
		}
	}
	return unsteered
}

// slowest is the longest creation outside of an outage of the API server itself.
func (s *stream) slowest(outage period) time.Duration {
	var slowest time.Duration
	for _, c := range s.Since(time.Time{}) {
		if !outage.overlaps(c.Began, c.Began.Add(c.Took)) {
			slowest = max(slowest, c.Took)
		}
	}
	return slowest
}

// period is a stretch of time, none when it is zero.
type period struct{ from, to time.Time }

func (p period) overlaps(from, to time.Time) bool {
	return !p.from.IsZero() && from.Before(p.to) && to.After(p.from)
}
