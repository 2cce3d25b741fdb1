package faults

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// rowTimeout limits a row.
	rowTimeout = 8 * time.Minute
	// podsPerSecond is the rate of the pods to be steered, referencePerSecond
	// that of those that never come near the webhook. Together they leave most of
	// two cores to what a fault does.
	podsPerSecond, referencePerSecond = 15, 5
	// streak is how many pods in a row must be steered for steering to have
	// resumed.
	streak = 10

	// webhookTimeout is timeoutSeconds of the webhook.
	webhookTimeout = time.Second
	// leastMargin is what a creation may take besides, even on an idle machine: a
	// fault starts and stops programs, which share the two cores of a CI machine
	// with the API server.
	leastMargin = 500 * time.Millisecond
)

// play plays a row and judges it.
func (b *bed) play(ctx context.Context, f fault) result {
	ctx, cancel := context.WithTimeout(ctx, rowTimeout)
	defer cancel()
	row := result{Fault: f.name, MemoryLimitMiB: b.memoryLimit >> 20}
	start := time.Now()
	err := call(ctx, b, f.before)
	if err == nil {
		err = b.measure(ctx, f, &row)
	}
	err = errors.Join(err, call(ctx, b, f.after))
	row.Seconds = time.Since(start).Seconds()
	if err != nil {
		row.Problems = append(row.Problems, err.Error())
	}
	return row
}

// call calls a step of a row that need not be there.
func call(ctx context.Context, b *bed, step func(context.Context, *bed) error) error {
	if step == nil {
		return nil
	}
	return step(ctx, b)
}

// measure lets the fault happen while pods are created.
func (b *bed) measure(ctx context.Context, f fault, row *result) error {
	if err := errors.Join(b.rejections.begin(ctx), b.failOpens.begin(ctx)); err != nil {
		return err
	}
	b.outage = period{}
	b.steered = startStream(ctx, b.Client(), steeredNamespace, podsPerSecond)
	b.reference = startStream(ctx, b.Client(), referenceNamespace, referencePerSecond)
	memory := watchMemory(ctx, b)
	err := b.breakAndHeal(ctx, f, row)
	peak, memoryErr := memory.stop()
	row.MemoryMiB = peak >> 20
	err = errors.Join(err, memoryErr, b.steered.Stop(ctx), b.reference.Stop(ctx), b.countCalls(ctx))
	served, servedErr := b.installed.Served(ctx)
	row.ServedByReplica, err = served, errors.Join(err, servedErr)
	if f.name == noFault {
		b.normal = max(b.steered.slowest(period{}), b.reference.slowest(period{}))
	}
	b.fill(row)
	row.Problems = b.judge(f, row)
	return err
}

// breakAndHeal waits for steering, breaks it, and waits for it to resume.
func (b *bed) breakAndHeal(ctx context.Context, f fault, row *result) error {
	start := time.Now()
	err := wait(ctx, "steering before the fault", func(context.Context) (bool, error) { return !b.resumed(start).IsZero(), nil })
	if err != nil {
		return err
	}
	injected := time.Now()
	err = f.inject(ctx, b)
	if err == nil {
		err = b.waitFor(ctx, "the effect of the fault", f.shows, injected)
	}
	// Also after an error: the next row is to find everything in order.
	err = errors.Join(err, call(ctx, b, f.end))
	ended := time.Now()
	if f.outage {
		b.outage = period{injected, ended}
	}
	resumed := wait(ctx, "steering to resume", func(context.Context) (bool, error) { return !b.resumed(ended).IsZero(), nil })
	if resumed == nil {
		row.ResumedSeconds = b.resumed(ended).Sub(ended).Seconds()
		resumed = b.waitFor(ctx, "the end of the fault to show", f.recovered, ended)
	}
	row.Recovered = resumed == nil
	return errors.Join(err, resumed)
}

// waitFor waits for a condition that need not be there.
func (b *bed) waitFor(ctx context.Context, what string, holds condition, since time.Time) error {
	if holds == nil {
		return nil
	}
	return wait(ctx, what, func(ctx context.Context) (bool, error) { return holds(ctx, b, since) })
}

// resumed returns when the first of the latest pods was created if all of those,
// begun after a moment, were steered.
func (b *bed) resumed(since time.Time) time.Time {
	pods := b.steered.Since(since)
	if len(pods) < streak {
		return time.Time{}
	}
	pods = pods[len(pods)-streak:]
	for _, pod := range pods {
		if pod.Steering == "" {
			return time.Time{}
		}
	}
	return pods[0].Began
}

// countCalls adds to the counts of failed calls. Before the API server is stopped
// this saves what it has counted.
func (b *bed) countCalls(ctx context.Context) error {
	return errors.Join(b.rejections.add(ctx), b.failOpens.add(ctx))
}

// fill fills in what the streams have seen.
func (b *bed) fill(row *result) {
	all := b.steered.Since(time.Time{})
	row.Created = len(all)
	row.Steered = len(all) - b.steered.unsteeredSince(time.Time{})
	// Two ways to see a denial; neither must see one.
	row.Denied = max(len(b.steered.Denials()), b.rejections.sum)
	row.FailedOpen = b.failOpens.sum
	row.Unavailable, _ = b.steered.Unavailability()
	// Normal is what creations take without a fault, or in spite of the fault
	// without us: the reference feels the machine's load as the others do. Twice
	// that, since it is the slowest of fewer creations.
	normal := max(b.normal, b.reference.slowest(b.outage))
	row.NormalSeconds = normal.Seconds()
	row.LimitSeconds = (webhookTimeout + max(2*normal, leastMargin)).Seconds()
	row.SlowestSeconds = b.steered.slowest(b.outage).Seconds()
}

// judge says what is not as it must be.
func (b *bed) judge(f fault, row *result) (problems []string) {
	if row.Denied > 0 {
		problems = append(problems, fmt.Sprintf("%d pods were denied; the API server counts %d rejections; errors: %v",
			row.Denied, b.rejections.sum, errors.Join(b.steered.Denials()...)))
	}
	if tries, last := b.steered.Unavailability(); tries > 0 && !f.outage {
		problems = append(problems, fmt.Sprintf("%d tries to create a pod failed, though the API server ran; the last: %v", tries, last))
	}
	if row.SlowestSeconds > row.LimitSeconds {
		problems = append(problems, fmt.Sprintf("the slowest creation took %.2f s, more than %.2f s", row.SlowestSeconds, row.LimitSeconds))
	}
	if row.MemoryMiB > row.MemoryLimitMiB {
		problems = append(problems, fmt.Sprintf("a replica took %d MiB of memory, more than its limit, %d MiB", row.MemoryMiB, row.MemoryLimitMiB))
	}
	return problems
}
