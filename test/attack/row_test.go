package attack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/podstream"
)

const (
	// rowTimeout limits a row.
	rowTimeout = 4 * time.Minute
	// victimsPerSecond and referencePerSecond are the rates of the pods that are
	// measured. They leave most of two cores to the attack.
	victimsPerSecond, referencePerSecond = 20, 5
	// streak is how many victims in a row must be steered before the attack begins.
	streak = 10
)

// play plays a row and judges it.
func (b *bed) play(ctx context.Context, a attack, earlier *reportFile) result {
	ctx, cancel := context.WithTimeout(ctx, rowTimeout)
	defer cancel()
	row := result{
		Attack: a.name, OptedIn: a.optedIn, Mode: b.mode, Nodes: b.nodes,
		MemoryLimitMiB: mebibytes(b.memoryLimit), KeptLimitMiB: a.keepMiB, LeastRequests: a.least * int(b.length.Seconds()),
		ComparedMillis: earlier.p99(a.compare, b.mode),
	}
	began := time.Now()
	err := b.measure(ctx, a, &row)
	row.Seconds = time.Since(began).Seconds()
	row.Problems = judge(&row)
	if err != nil {
		row.Problems = append(row.Problems, err.Error())
	}
	b.hurt = len(row.Problems) > 0
	return row
}

// measure looks at the replicas while they are attacked.
func (b *bed) measure(ctx context.Context, a attack, row *result) error {
	user, err := b.newAttacker(ctx, a)
	if err != nil {
		return err
	}
	before, err := b.inUse(ctx, a)
	if err != nil {
		return err
	}
	pids := b.pids()
	memory, probes := watchMemory(ctx, b), watchProbes(ctx, b)
	err = b.attack(ctx, a, user, row)
	after, heapErr := b.inUse(ctx, a)
	row.FailedProbes = probes.stop()
	peak, memoryErr := memory.stop()
	row.PeakMiB = mebibytes(peak)
	row.KeptMiB = mostGrown(before, after)
	row.Requests, row.AttackError = user.outcome()
	for i, pid := range b.pids() {
		if pid != pids[i] {
			row.Ended++
		}
	}
	return errors.Join(err, heapErr, memoryErr)
}

// attack lets the attack happen while victims are created, and waits until everything is
// normal again.
func (b *bed) attack(ctx context.Context, a attack, user *attacker, row *result) error {
	victims := podstream.Start(ctx, victimsOptions(b.Client(), a.shared))
	reference := podstream.Start(ctx, podstream.Options{
		Client: b.Client(), Namespace: referenceNamespace, PerSecond: referencePerSecond,
	})
	err := waitSteered(ctx, victims)
	attacking, cancel := context.WithTimeout(ctx, a.lead+b.length)
	defer cancel()
	var running errgroup.Group
	lead := func() {
		running.Go(func() error { return a.run(attacking, b, user) })
		podstream.Pause(ctx, a.lead)
	}
	if a.lead > 0 {
		lead()
	}
	// Before the attack, if possible: it may be on what is counted.
	before, countErr := b.count(ctx)
	began := time.Now()
	if a.lead == 0 {
		lead()
	}
	err = errors.Join(err, countErr, running.Wait())
	row.Due = int(time.Since(began).Seconds() * victimsPerSecond)
	err = errors.Join(err, victims.Stop(ctx), reference.Stop(ctx))
	after, countErr := b.count(ctx)
	err = errors.Join(err, countErr, b.clear(ctx, user.namespace))
	ended := time.Now()
	row.fill(victims, began)
	row.fillCounts(before, after)
	b.allow(row, victims, reference, began)
	notNormal := b.waitNormal(ctx, ended)
	row.Recovered = notNormal == nil
	row.RecoveredSeconds = time.Since(ended).Seconds()
	if notNormal != nil {
		row.NotNormal = notNormal.Error()
	}
	return err
}

// victimsOptions say what the victims create. Those that share nodes want a whole one each.
func victimsOptions(c client.Client, shared bool) podstream.Options {
	options := podstream.Options{Client: c, Namespace: victimsNamespace, PerSecond: victimsPerSecond}
	if shared {
		options.MaxAlive = victimsOnSharedNodes
		options.Pod = func(namespace, name string) *corev1.Pod {
			pod := eightGPUs(0)
			pod.Namespace, pod.Name = namespace, name
			return pod
		}
	}
	return options
}

// waitSteered waits until the latest victims were all steered.
func waitSteered(ctx context.Context, victims *podstream.Stream) error {
	return wait(ctx, "the victims to be steered before the attack", func(context.Context) (bool, error) {
		pods := victims.Since(time.Time{})
		if len(pods) < streak {
			return false, fmt.Errorf("%d victims were created; denied: %w", len(pods), errors.Join(victims.Denials()...))
		}
		for _, pod := range pods[len(pods)-streak:] {
			if pod.Steering != config.SteeringRanked {
				return false, fmt.Errorf("a victim has the steering %q", pod.Steering)
			}
		}
		return true, nil
	})
}

// fill fills in what became of the victims that were created after a moment.
func (r *result) fill(victims *podstream.Stream, began time.Time) {
	pods := victims.Since(began)
	r.Victims = len(pods)
	for _, pod := range pods {
		// Late steering is for pods that fit nowhere, and there is room for all of them.
		if pod.Steering == config.SteeringRanked {
			r.Steered++
		}
	}
	r.SlowestMillis, r.P99Millis = millis(percentile(pods, 100)), millis(percentile(pods, 99))
	tries, last := victims.Unavailability()
	r.Unavailable = tries
	r.Denied = len(victims.Denials())
	if err := errors.Join(append(victims.Denials(), last)...); err != nil {
		r.Denial = err.Error()
	}
}

// fillCounts fills in what API server and replicas have counted.
func (r *result) fillCounts(before, after counts) {
	r.Calls, r.Delayed = after.calls-before.calls, after.slow-before.slow
	r.FailedOpen = after.failOpens - before.failOpens
	r.Denied = max(r.Denied, after.rejections-before.rejections)
	r.Decisions = map[string]int{}
	for what, count := range after.decisions {
		if count > before.decisions[what] {
			r.Decisions[what] = count - before.decisions[what]
		}
	}
	r.RankedByMetrics = after.ranked - before.ranked
}

// allow fills in what is allowed to creations on the machine as it is at this moment,
// which the pods show that never come near the webhook: the attack is on the API server
// too.
func (b *bed) allow(row *result, victims, reference *podstream.Stream, began time.Time) {
	pods := reference.Since(began)
	slow := 0
	for _, pod := range pods {
		if pod.Took > decisionTimeout {
			slow++
		}
	}
	if len(pods) > 0 {
		row.AllowedDelayed = (slow*row.Victims + len(pods) - 1) / len(pods)
	}
	if row.Attack == noAttack {
		b.normal = max(percentile(victims.Since(began), 100), percentile(pods, 100))
	}
	// Twice the reference's slowest, since it is that of fewer creations.
	normal := max(b.normal, percentile(pods, 100))
	row.ReferenceMillis = millis(percentile(pods, 100))
	row.LimitMillis = millis(decisionTimeout + max(2*normal, leastMargin))
}

// percentile is the time that percent of the creations took at most, 0 for none.
func percentile(pods []podstream.Creation, percent int) time.Duration {
	if len(pods) == 0 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(pods), func(a, b podstream.Creation) int { return cmp.Compare(a.Took, b.Took) })
	return sorted[(len(sorted)*percent+99)/100-1].Took
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
