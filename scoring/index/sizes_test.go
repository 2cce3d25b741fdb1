package index_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

func TestOccupancy(t *testing.T) {
	eight, four, two := clustertest.List(clustertest.NVIDIA, "8"), clustertest.List(clustertest.NVIDIA, "4"), clustertest.List(clustertest.NVIDIA, "2")
	cases := map[string]struct {
		objects []any
		want    []nodes.Occupancy
	}{
		"no nodes with GPUs": {objects: []any{clustertest.GPUNode("cpu", nil)}},
		"an empty node": {
			objects: []any{clustertest.GPUNode("n", eight)},
			want:    []nodes.Occupancy{{Resource: clustertest.NVIDIA, Exact: true, EmptyNodes: 1, Allocatable: 8, FreeOnEmpty: 8, LargestFitting: 8}},
		},
		"one node of each state": {
			objects: []any{
				clustertest.GPUNode("empty", four), clustertest.GPUNode("partial", eight), clustertest.GPUNode("full", two),
				clustertest.GPUPod("a", two, clustertest.On("partial")), clustertest.GPUPod("b", two, clustertest.On("full")),
			},
			// partial has 8-2 = 6 free, empty 4.
			want: []nodes.Occupancy{{
				Resource: clustertest.NVIDIA, Exact: true, EmptyNodes: 1, PartialNodes: 1, FullNodes: 1,
				Allocatable: 14, Allocated: 4, FreeOnOccupied: 6, FreeOnEmpty: 4, LargestFitting: 6,
			}},
		},
		"pods of DaemonSets and terminating pods hold GPUs, but do not occupy": {
			objects: []any{
				clustertest.GPUNode("n", eight), clustertest.GPUNode("m", eight),
				clustertest.GPUPod("a", two, clustertest.On("n"), clustertest.OwnedByDaemonSet), clustertest.GPUPod("b", four, clustertest.On("m"), clustertest.Terminating),
			},
			want: []nodes.Occupancy{{Resource: clustertest.NVIDIA, Exact: true, EmptyNodes: 2, Allocatable: 16, Allocated: 6, FreeOnEmpty: 10, LargestFitting: 6}},
		},
		"nothing fits on nodes that take no pods": {
			objects: []any{
				clustertest.GPUNode("cordoned", eight, clustertest.Cordoned), clustertest.GPUNode("unready", eight, clustertest.Unready), clustertest.GPUNode("n", two),
				clustertest.GPUNode("crowded", four, func(n *corev1.Node) { n.Status.Allocatable["pods"] = clustertest.List("pods", "1")["pods"] }),
				clustertest.GPUPod("a", two, clustertest.On("cordoned")), clustertest.GPUPod("b", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("crowded")),
			},
			want: []nodes.Occupancy{{
				Resource: clustertest.NVIDIA, Exact: true, EmptyNodes: 2, PartialNodes: 2,
				Allocatable: 22, Allocated: 3, FreeOnEmpty: 2, LargestFitting: 2,
			}},
		},
		"more allocated than there is": {
			objects: []any{clustertest.GPUNode("n", two), clustertest.GPUNode("m", two), clustertest.GPUPod("a", four, clustertest.On("n"))},
			want: []nodes.Occupancy{{
				Resource: clustertest.NVIDIA, Exact: true, EmptyNodes: 1, FullNodes: 1,
				Allocatable: 4, Allocated: 4, FreeOnEmpty: 2, LargestFitting: 2,
			}},
		},
		"names are apart, and sorted": {
			objects: []any{
				clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "2", clustertest.MIG, "7")), clustertest.GPUNode("a", clustertest.List(clustertest.AMD, "1")),
				clustertest.GPUPod("a", clustertest.List(clustertest.MIG, "3"), clustertest.On("n")),
			},
			want: []nodes.Occupancy{
				{Resource: clustertest.AMD, Exact: true, EmptyNodes: 1, Allocatable: 1, FreeOnEmpty: 1, LargestFitting: 1},
				{Resource: clustertest.NVIDIA, Exact: true, EmptyNodes: 1, Allocatable: 2, FreeOnEmpty: 2, LargestFitting: 2},
				{Resource: clustertest.MIG, PartialNodes: 1, Allocatable: 7, Allocated: 3, FreeOnOccupied: 4, LargestFitting: 4},
			},
		},
		"pods without a node that exists": {
			objects: []any{clustertest.GPUNode("n", two), clustertest.GPUPod("a", two, clustertest.On("gone"))},
			want:    []nodes.Occupancy{{Resource: clustertest.NVIDIA, Exact: true, EmptyNodes: 1, Allocatable: 2, FreeOnEmpty: 2, LargestFitting: 2}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clustertest.New(t, nil, tc.objects...).Occupancy()); diff != "" {
				t.Errorf("occupancy (-want +got):\n%s", diff)
			}
		})
	}
}

// A decision counts at once, and no more when its pod never comes.
func TestOccupancyCountsReservations(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
	if d := c.DecideOn(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "3"))); d.Reason != steering.ReasonNone {
		t.Fatalf("not steered: %s", d.Reason)
	}
	if got := c.Occupancy()[0]; got.PartialNodes != 1 || got.Allocated != 3 || got.LargestFitting != 5 {
		t.Errorf("after the decision: %+v", got)
	}
	c.Clock = c.Clock.Add(c.Config.InFlight.ReservationTTL.Duration + time.Second)
	if got := c.Occupancy()[0]; got.EmptyNodes != 1 || got.Allocated != 0 || got.LargestFitting != 8 {
		t.Errorf("after its end: %+v", got)
	}
}

// A node in back-off has GPUs, but nothing fits there.
func TestOccupancyInBackoff(t *testing.T) {
	c := clustertest.New(t, func(cfg *config.Configuration) { cfg.Nodes.Backoff.Failures = 1 }, clustertest.GPUNode("hole", clustertest.List(clustertest.NVIDIA, "8")))
	// The failures of one namespace say nothing of others.
	refuse(t, c, "p", "hole", "UnexpectedAdmissionError")
	if got := c.Occupancy()[0]; got.FreeOnEmpty != 8 {
		t.Errorf("in back-off for one namespace: %+v", got)
	}
	refuse(t, c, "q", "hole", "UnexpectedAdmissionError", of("other"))
	if got := c.Occupancy()[0]; got.Allocatable != 8 || got.FreeOnEmpty != 0 || got.LargestFitting != 0 {
		t.Errorf("in back-off: %+v", got)
	}
	c.Clock = c.Clock.Add(c.Config.Nodes.Backoff.Initial.Duration + time.Second)
	if got := c.Occupancy()[0]; got.FreeOnEmpty != 8 || got.LargestFitting != 8 {
		t.Errorf("after the back-off: %+v", got)
	}
}

// What a scrape costs. The lock is held only while the list of nodes is copied,
// which locked measures.
func BenchmarkOccupancy(b *testing.B) {
	for _, objects := range []int{1000, 15000} {
		c := clustertest.New(b, nil)
		for i := range objects {
			c.SetNode(clustertest.GPUNode(fmt.Sprintf("n%d", i), clustertest.List(clustertest.NVIDIA, "8", clustertest.MIG, "7")))
			c.SetPod(clustertest.GPUPod(fmt.Sprintf("p%d", i), clustertest.List(clustertest.NVIDIA, "1"), clustertest.On(fmt.Sprintf("n%d", i))))
		}
		b.Run(fmt.Sprintf("nodes=%d/whole", objects), func(b *testing.B) {
			for b.Loop() {
				if got := c.Occupancy(); got[0].PartialNodes != objects {
					b.Fatalf("%+v", got)
				}
			}
		})
		b.Run(fmt.Sprintf("nodes=%d/locked", objects), func(b *testing.B) {
			for b.Loop() {
				if states := c.NodesNow(); len(states) != objects {
					b.Fatalf("%d nodes", len(states))
				}
			}
		})
	}
}
