package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

const (
	// patience is how long nothing may happen while pods are to be created.
	patience = time.Minute
	// settled is how long nothing may happen while some pods have no node, before
	// it is believed that they get none. Longer than the scheduler's back-off of
	// up to ten seconds.
	settled = 12 * time.Second
	// sampleInterval is the time between two samples in workloads with churn.
	sampleInterval = 250 * time.Millisecond
	// inFlight is how many requests are in flight at most in such workloads.
	inFlight = 64
)

// play creates the pods of the workload and returns when all that can be are
// bound, or when the churn is over.
func (r *run) play(ctx context.Context, c creator) error {
	switch {
	case r.w.HasChurn():
		if err := r.playEvents(ctx, c.(*direct), r.w.Events, r.w.Fill); err != nil {
			return err
		}
		return r.decided(ctx, len(r.w.Pods))
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

// playEvents plays arrivals and departures at their times. The first ones, up to
// fill, come as a burst; then sampling begins.
func (r *run) playEvents(ctx context.Context, c *direct, events []workload.Event, fill int) error {
	created := make([]chan struct{}, len(r.w.Pods))
	first := make([]int, fill)
	for i := range created {
		created[i] = make(chan struct{})
	}
	for i, e := range events[:fill] {
		first[i] = e.Pod
		close(created[e.Pod])
	}
	if err := c.create(ctx, first); err != nil {
		return err
	}
	if err := r.decided(ctx, fill); err != nil {
		return err
	}
	stop := r.sample()
	defer stop()
	start := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for _, e := range events[fill:] {
		if err := sleepUntil(groupCtx, start.Add(e.At)); err != nil {
			return errors.Join(err, group.Wait())
		}
		r.lag = time.Since(start.Add(e.At))
		if e.Leaves {
			group.Go(func() error { return r.end(groupCtx, e.Pod, created[e.Pod]) })
			continue
		}
		group.Go(func() error {
			defer close(created[e.Pod])
			return c.createOne(groupCtx, e.Pod)
		})
	}
	return group.Wait()
}

// end deletes a pod when it has been created.
func (r *run) end(ctx context.Context, pod int, created <-chan struct{}) error {
	select {
	case <-created:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := r.bed.Clients().CoreV1().Pods(r.namespace).Delete(ctx, podName(pod), *metav1.NewDeleteOptions(0))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting pod: %w", err)
	}
	return nil
}

// sample takes samples of the usage until the returned function is called.
func (r *run) sample() (stop func()) {
	if !r.w.HasChurn() {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(sampleInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.average.add(usageOf(r.w.Nodes, r.observer.inUse()))
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// sleepUntil returns at the time, or earlier with an error when ctx ends.
func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
