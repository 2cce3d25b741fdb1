package faults

import (
	"context"
	"testing"
	"time"
)

// fault is a row: what happens while pods are created, how it shows, and how it
// ends. All functions but inject may be nil.
type fault struct {
	name string
	// short: the row is a part of the short form too.
	short bool
	// outage: the API server itself does not serve for a while, so that no pod can
	// be created with or without us.
	outage bool

	// before and after come outside the time that is measured.
	before, after func(context.Context, *bed) error
	// inject makes the fault happen.
	inject func(context.Context, *bed) error
	// shows tells whether the fault, injected at that time, has had its effect.
	shows condition
	// end ends the fault, as whoever is responsible in a cluster would. Nothing
	// is done to the webhook beyond that: it recovers by itself.
	end func(context.Context, *bed) error
	// recovered tells what holds after the end, besides steering.
	recovered condition
}

// condition is what a row waits for; since is when the fault began or ended.
type condition func(ctx context.Context, b *bed, since time.Time) (bool, error)

// faults returns the rows in order. Those that are not short take long, most for
// the clients of the API server, which come back to it up to half a minute later.
func faults(full bool) []fault {
	size := func(short, long int) int {
		if full {
			return long
		}
		return short
	}
	return []fault{
		{name: noFault, short: true, inject: nothing, shows: created(size(40, 300))},
		certificateNotIssued(),
		{name: "leaf renewed", short: true, inject: renewLeaf, shows: newLeafServed},
		{name: "CA rotated", inject: rotateCA, shows: newCAKnown},
		{name: "certificate expired", inject: expireCertificate, shows: expiredServed, end: startCertManager},
		{name: "webhook killed", short: true, inject: killReplicas, shows: unsteered, end: startReplicas},
		{name: "webhook frozen", short: true, inject: freezeReplicas, shows: unsteered, end: thawReplicas},
		{name: "port closed", short: true, inject: webhookGate(refusing), shows: unsteered, end: webhookGate(passing)},
		{name: "accepting and never answering", short: true, inject: webhookGate(silent), shows: unsteered, end: webhookGate(passing)},
		cachesNotSynced(),
		{name: "API server restarted", short: true, outage: true, inject: killAPIServer, shows: notServed, end: startAPIServer},
		{name: "etcd restarted", outage: true, inject: stopEtcd, shows: notServed, end: startEtcd},
		watchCut("watch cut", true, resetting, size(5, 60)),
		// The connection stays, so that only its silence tells.
		watchCut("watch silent", false, silent, 60),
		{name: "scheduler restarted", inject: stopScheduler, shows: created(30), end: startScheduler, recovered: boundAgain},
		{name: "two replicas rolled", inject: rollReplicas, shows: created(30), recovered: bothServe},
		decisionFault("panic in each decision", true, "panic", "Panic"),
		decisionFault("slow decisions", false, "2s", "Timeout"),
		garbage(size(1000, 10000)),
		slowClients(),
		connectionsAtOnce(500),
	}
}

// noFault is the row that shows what is normal.
const noFault = "none"

// TestFaults plays the rows. When steering does not resume after one, the next
// could only show the same.
func TestFaults(t *testing.T) {
	mode := modeShort
	if *full {
		mode = modeFull
	}
	for _, f := range faults(*full) {
		if !f.short && !*full {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			row := cluster.play(t.Context(), f)
			row.Mode = mode
			report.add(row)
			for _, problem := range row.Problems {
				t.Error(problem)
			}
			if !row.Recovered {
				t.Error("steering has not resumed")
			}
		})
		if rows := report.rows; len(rows) > 0 && !rows[len(rows)-1].Recovered {
			t.Fatalf("no further rows after %s", f.name)
		}
	}
}

// nothing is the fault that is none.
func nothing(context.Context, *bed) error { return nil }

// created is true after that many more pods.
func created(pods int) condition {
	return func(_ context.Context, b *bed, since time.Time) (bool, error) {
		return len(b.steered.Since(since)) >= pods, nil
	}
}

// unsteered is true after enough pods without steering, a second's worth.
func unsteered(_ context.Context, b *bed, since time.Time) (bool, error) {
	return b.steered.unsteeredSince(since) >= podsPerSecond, nil
}

// unsteeredByRunning is unsteered while all replicas run.
func unsteeredByRunning(ctx context.Context, b *bed, since time.Time) (bool, error) {
	shows, err := unsteered(ctx, b, since)
	return shows && len(b.pids()) == len(b.installed.Replicas()), err
}

// notServed is true when the API server has not served several tries.
func notServed(_ context.Context, b *bed, _ time.Time) (bool, error) {
	tries, _ := b.steered.Unavailability()
	return tries >= 5, nil
}
