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
	// sampleInterval is the time between two samples in workloads with churn.
	sampleInterval = 250 * time.Millisecond
	// inFlight is how many requests are in flight at most in such workloads.
	inFlight = 64
)

// playEvents plays arrivals and departures at their times. The first ones, up to
// fill, come as a burst; then sampling begins, which ends with the last event. It
// returns when the scheduler has decided about every pod; where pods live whole
// lives, when every pod was bound or nothing happened for long.
func (r *run) playEvents(ctx context.Context, c *direct, events []workload.Event, fill int) error {
	departing, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &player{
		run: r, direct: c, arrives: r.w.ArrivesAt(), created: make([]chan struct{}, len(r.w.Pods)),
		departing: departing, departures: &errgroup.Group{},
	}
	if err := p.fill(ctx, events[:fill]); err != nil {
		return err
	}
	stop := r.sample()
	r.observer.measureWaits()
	err := p.play(ctx, events[fill:])
	stop()
	if err == nil {
		err = p.end(ctx)
	}
	cancel()
	return errors.Join(err, p.departures.Wait())
}

// player plays the events of one run.
type player struct {
	run    *run
	direct *direct
	// arrives is when each pod comes; created is closed when it has come.
	arrives []time.Duration
	created []chan struct{}
	// started is when the fill was over.
	started time.Time
	// departures are the pods that leave when they have lived long enough, until
	// departing ends.
	departing  context.Context
	departures *errgroup.Group
}

// fill creates the pods that are there from the beginning.
func (p *player) fill(ctx context.Context, events []workload.Event) error {
	first := make([]int, len(events))
	for i := range p.created {
		p.created[i] = make(chan struct{})
	}
	for i, e := range events {
		first[i] = e.Pod
		close(p.created[e.Pod])
	}
	if err := p.direct.create(ctx, first); err != nil {
		return err
	}
	return p.run.decided(ctx, len(first))
}

// play plays the events after the fill.
func (p *player) play(ctx context.Context, events []workload.Event) error {
	p.started = time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for _, e := range events {
		at := p.started.Add(e.At)
		if err := sleepUntil(groupCtx, at); err != nil {
			return errors.Join(err, group.Wait())
		}
		p.run.lag = time.Since(at)
		switch {
		case !e.Leaves:
			group.Go(func() error {
				defer close(p.created[e.Pod])
				return p.direct.createOne(groupCtx, e.Pod)
			})
		case p.run.w.WholeLives:
			p.departures.Go(func() error { return p.leaveAfter(e.Pod, e.At-p.arrives[e.Pod]) })
		default:
			group.Go(func() error { return p.leave(groupCtx, e.Pod) })
		}
	}
	return group.Wait()
}

// end waits until the scheduler has decided about the last pods.
func (p *player) end(ctx context.Context) error {
	count := len(p.run.w.Pods)
	if !p.run.w.WholeLives {
		return p.run.decided(ctx, count)
	}
	err := p.run.observer.wait(ctx, patience, func(seen progress) bool { return seen.bound >= count })
	if errors.Is(err, errStalled) {
		return nil // the report says how many are bound
	}
	return err
}

// leaveAfter deletes a pod when so much time has passed since it was bound; a pod
// of the fill counts as bound at the end of the fill.
func (p *player) leaveAfter(pod int, lifetime time.Duration) error {
	ctx := p.departing
	bound, err := p.run.observer.boundAt(ctx, podName(pod))
	if err == nil {
		if bound.Before(p.started) {
			bound = p.started
		}
		err = sleepUntil(ctx, bound.Add(lifetime))
	}
	if err == nil {
		err = p.leave(ctx, pod)
	}
	if ctx.Err() != nil {
		return nil // the run is over, and the pod is removed with all others
	}
	return err
}

// leave deletes a pod when it has been created.
func (p *player) leave(ctx context.Context, pod int) error {
	select {
	case <-p.created[pod]:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := p.run.bed.Clients().CoreV1().Pods(p.run.namespace).Delete(ctx, podName(pod), *metav1.NewDeleteOptions(0))
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
