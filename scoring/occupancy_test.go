package scoring

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func TestOccupancy(t *testing.T) {
	eight, four, two := list(nvidia, "8"), list(nvidia, "4"), list(nvidia, "2")
	cases := map[string]struct {
		objects []any
		want    []Occupancy
	}{
		"no nodes with GPUs": {objects: []any{gpuNode("cpu", nil)}},
		"an empty node": {
			objects: []any{gpuNode("n", eight)},
			want:    []Occupancy{{Resource: nvidia, Exact: true, EmptyNodes: 1, Allocatable: 8, FreeOnEmpty: 8, LargestFitting: 8}},
		},
		"one node of each state": {
			objects: []any{
				gpuNode("empty", four), gpuNode("partial", eight), gpuNode("full", two),
				gpuPod("a", two, on("partial")), gpuPod("b", two, on("full")),
			},
			// partial has 8-2 = 6 free, empty 4.
			want: []Occupancy{{
				Resource: nvidia, Exact: true, EmptyNodes: 1, PartialNodes: 1, FullNodes: 1,
				Allocatable: 14, Allocated: 4, FreeOnOccupied: 6, FreeOnEmpty: 4, LargestFitting: 6,
			}},
		},
		"pods of DaemonSets and terminating pods hold GPUs, but do not occupy": {
			objects: []any{
				gpuNode("n", eight), gpuNode("m", eight),
				gpuPod("a", two, on("n"), ownedByDaemonSet), gpuPod("b", four, on("m"), terminating),
			},
			want: []Occupancy{{Resource: nvidia, Exact: true, EmptyNodes: 2, Allocatable: 16, Allocated: 6, FreeOnEmpty: 10, LargestFitting: 6}},
		},
		"nothing fits on nodes that take no pods": {
			objects: []any{
				gpuNode("cordoned", eight, cordoned), gpuNode("unready", eight, unready), gpuNode("n", two),
				gpuNode("crowded", four, func(n *corev1.Node) { n.Status.Allocatable["pods"] = list("pods", "1")["pods"] }),
				gpuPod("a", two, on("cordoned")), gpuPod("b", list(nvidia, "1"), on("crowded")),
			},
			want: []Occupancy{{
				Resource: nvidia, Exact: true, EmptyNodes: 2, PartialNodes: 2,
				Allocatable: 22, Allocated: 3, FreeOnEmpty: 2, LargestFitting: 2,
			}},
		},
		"more allocated than there is": {
			objects: []any{gpuNode("n", two), gpuNode("m", two), gpuPod("a", four, on("n"))},
			want: []Occupancy{{
				Resource: nvidia, Exact: true, EmptyNodes: 1, FullNodes: 1,
				Allocatable: 4, Allocated: 4, FreeOnEmpty: 2, LargestFitting: 2,
			}},
		},
		"names are apart, and sorted": {
			objects: []any{
				gpuNode("n", list(nvidia, "2", mig, "7")), gpuNode("a", list(amd, "1")),
				gpuPod("a", list(mig, "3"), on("n")),
			},
			want: []Occupancy{
				{Resource: amd, Exact: true, EmptyNodes: 1, Allocatable: 1, FreeOnEmpty: 1, LargestFitting: 1},
				{Resource: nvidia, Exact: true, EmptyNodes: 1, Allocatable: 2, FreeOnEmpty: 2, LargestFitting: 2},
				{Resource: mig, PartialNodes: 1, Allocatable: 7, Allocated: 3, FreeOnOccupied: 4, LargestFitting: 4},
			},
		},
		"pods without a node that exists": {
			objects: []any{gpuNode("n", two), gpuPod("a", two, on("gone"))},
			want:    []Occupancy{{Resource: nvidia, Exact: true, EmptyNodes: 1, Allocatable: 2, FreeOnEmpty: 2, LargestFitting: 2}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, newCluster(t, nil, tc.objects...).Occupancy()); diff != "" {
				t.Errorf("occupancy (-want +got):\n%s", diff)
			}
		})
	}
}

// A decision counts at once, and no more when its pod never comes.
func TestOccupancyCountsReservations(t *testing.T) {
	c := newCluster(t, nil, gpuNode("n", list(nvidia, "8")))
	if d := c.decide(gpuPod("p", list(nvidia, "3"))); d.Reason != ReasonNone {
		t.Fatalf("not steered: %s", d.Reason)
	}
	if got := c.Occupancy()[0]; got.PartialNodes != 1 || got.Allocated != 3 || got.LargestFitting != 5 {
		t.Errorf("after the decision: %+v", got)
	}
	c.clock = c.clock.Add(c.Index.cfg.InFlight.ReservationTTL.Duration + time.Second)
	if got := c.Occupancy()[0]; got.EmptyNodes != 1 || got.Allocated != 0 || got.LargestFitting != 8 {
		t.Errorf("after its end: %+v", got)
	}
}

// A node in back-off has GPUs, but nothing fits there.
func TestOccupancyInBackoff(t *testing.T) {
	c := newCluster(t, func(cfg *config.Configuration) { cfg.Nodes.Backoff.Failures = 1 }, gpuNode("hole", list(nvidia, "8")))
	c.SetPod(gpuPod("p", list(nvidia, "1")))
	c.SetPod(gpuPod("p", list(nvidia, "1"), on("hole"), phase(corev1.PodFailed), func(p *corev1.Pod) { p.Status.Reason = "UnexpectedAdmissionError" }))
	if got := c.Occupancy()[0]; got.Allocatable != 8 || got.FreeOnEmpty != 0 || got.LargestFitting != 0 {
		t.Errorf("in back-off: %+v", got)
	}
	c.clock = c.clock.Add(c.Index.cfg.Nodes.Backoff.Initial.Duration + time.Second)
	if got := c.Occupancy()[0]; got.FreeOnEmpty != 8 || got.LargestFitting != 8 {
		t.Errorf("after the back-off: %+v", got)
	}
}

func TestLastEvent(t *testing.T) {
	c := newCluster(t, nil)
	if at := c.LastEvent(); !at.IsZero() {
		t.Errorf("an event at %v, before the first", at)
	}
	if err := FeedNodes(c.Index).Add(gpuNode("n", list(nvidia, "8"))); err != nil {
		t.Fatal(err)
	}
	if at := c.LastEvent(); !at.Equal(testStart) {
		t.Errorf("event of a node at %v, want %v", at, testStart)
	}
	events := map[string]func() error{
		"heartbeat":   func() error { return FeedNodes(c.Index).Update(gpuNode("n", list(nvidia, "8"))) },
		"pod":         func() error { return FeedPods(c.Index).Add(gpuPod("p", list(nvidia, "1"))) },
		"deleted pod": func() error { return FeedPods(c.Index).Delete(gpuPod("p", list(nvidia, "1"))) },
	}
	for name, event := range events {
		c.clock = c.clock.Add(time.Minute)
		if err := event(); err != nil {
			t.Fatal(err)
		}
		if at := c.LastEvent(); !at.Equal(c.clock) {
			t.Errorf("%s: event at %v, want %v", name, at, c.clock)
		}
	}
}

// What a scrape costs. The lock is held only while the list of nodes is copied,
// which locked measures.
func BenchmarkOccupancy(b *testing.B) {
	for _, nodes := range []int{1000, 15000} {
		c := newCluster(b, nil)
		for i := range nodes {
			c.SetNode(gpuNode(fmt.Sprintf("n%d", i), list(nvidia, "8", mig, "7")))
			c.SetPod(gpuPod(fmt.Sprintf("p%d", i), list(nvidia, "1"), on(fmt.Sprintf("n%d", i))))
		}
		b.Run(fmt.Sprintf("nodes=%d/whole", nodes), func(b *testing.B) {
			for b.Loop() {
				if got := c.Occupancy(); got[0].PartialNodes != nodes {
					b.Fatalf("%+v", got)
				}
			}
		})
		b.Run(fmt.Sprintf("nodes=%d/locked", nodes), func(b *testing.B) {
			for b.Loop() {
				states, _, _ := c.nodesNow()
				if len(states) != nodes {
					b.Fatalf("%d nodes", len(states))
				}
			}
		})
	}
}
