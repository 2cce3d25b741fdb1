package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

const (
	// patience is how long nothing may happen while pods are to be created.
	patience = time.Minute
	// settled is how long nothing may happen while some pods have no node, before
	// it is believed that they get none. Longer than the scheduler's back-off of
	// up to ten seconds.
	settled = 12 * time.Second
)

// play creates the pods of the workload and returns when all that can be are
// bound, or when the churn is over.
func (r *run) play(ctx context.Context, c creator) error {
	switch {
	case r.w.HasChurn():
		return r.playEvents(ctx, c.(*direct), r.w.Events, r.w.Fill)
	case r.w.Arrival == workload.Rate:
		return r.playRate(ctx, c.(*direct))
	case r.w.Arrival == workload.Sequential:
		return r.playParts(ctx, c, 1)
	case r.w.BurstSize > 0:
		return r.playParts(ctx, c, r.w.BurstSize)
	default:
		return r.playParts(ctx, c, len(r.w.Pods))
	}
}

// playParts creates so many pods at a time, the next ones when those before are
// bound.
func (r *run) playParts(ctx context.Context, c creator, size int) error {
	for from := 0; from < len(r.w.Pods); from += size {
		to := min(from+size, len(r.w.Pods))
		part := make([]int, 0, to-from)
		for i := from; i < to; i++ {
			part = append(part, i)
		}
		if err := c.create(ctx, part); err != nil {
			return err
		}
		if err := r.settle(ctx, to); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until so many pods exist and are bound, or cannot be. If the nodes
// come last, it makes them when all pods wait.
func (r *run) settle(ctx context.Context, count int) error {
	if err := r.decided(ctx, count); err != nil {
		return err
	}
	if r.w.NodesLast {
		r.started = time.Now()
		if err := r.bed.CreateNodes(ctx, nodesOf(r.w)...); err != nil {
			return err
		}
	}
	err := r.observer.wait(ctx, settled, func(p progress) bool { return p.bound >= count })
	if errors.Is(err, errStalled) {
		return nil // the report says how many are bound
	}
	return err
}

// decided waits until so many pods exist and the scheduler has bound each or
// called it unschedulable.
func (r *run) decided(ctx context.Context, count int) error {
	err := r.observer.wait(ctx, patience, func(p progress) bool { return p.decided(count) })
	if err != nil {
		seen, _ := r.observer.look()
		return fmt.Errorf("waiting for %d pods to be decided about, %d exist, %d are bound and %d wait: %w",
			count, seen.created, seen.bound, seen.waiting, err)
	}
	return nil
}

// playRate creates the pods at the workload's rate.
func (r *run) playRate(ctx context.Context, c *direct) error {
	events := make([]workload.Event, len(r.w.Pods))
	for i := range events {
		at := float64(i) / r.w.RatePerSecond * float64(time.Second)
		events[i] = workload.Event{At: time.Duration(at), Pod: i}
	}
	if err := r.playEvents(ctx, c, events, 0); err != nil {
		return err
	}
	return r.settle(ctx, len(r.w.Pods))
}
