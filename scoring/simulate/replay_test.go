package simulate

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func arrival(name string, gpus int, at, duration int64) Arrival {
	p := gpuPod(name, "", gpus)
	return Arrival{Pod: &p, At: at, Duration: duration}
}

func TestReplay(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes    []corev1.Node
		arrivals []Arrival
		want     map[Rule]Replay
	}{
		"nothing comes": {nodes: nodesNamed(1), want: map[Rule]Replay{Packed: {Rule: Packed}, Spread: {Rule: Spread}}},
		"one after another": {
			nodes: nodesNamed(4),
			// From 0 to 40. Packed: one node throughout, 40/40. Spread: 1 node until 10,
			// then 2, 3 and 4: (10+20+30+40)/40 = 2.5.
			arrivals: []Arrival{arrival("a", 1, 0, -1), arrival("b", 1, 10, -1), arrival("c", 1, 20, -1), arrival("d", 1, 30, -1), arrival("e", 1, 40, -1)},
			want: map[Rule]Replay{
				Packed: {Rule: Packed, To: 40, Busiest: 40, AverageOccupied: 1, MostOccupied: 1, Pods: 5, GPUPods: 5},
				Spread: {Rule: Spread, To: 40, Busiest: 40, AverageOccupied: 2.5, MostOccupied: 4, Pods: 5, GPUPods: 5},
			},
		},
		"a large one waits": {
			nodes: nodesNamed(2),
			// Two with 4 GPUs at 0 that end at 100 and 60; 8 GPUs are asked for at 10. Packed
			// they are on one node and the other is free. Spread, each is on its own; the
			// large pod waits until 60. The last comes at 100, when the first ends.
			// Busiest is 10: 16 GPUs. Packed: 1 node until 10, 2 until the large one ends at
			// 30, then 1: (10+40+70)/100. Spread: 2 nodes until 60, then the second is the
			// large one's until 80, then 1: (120+40+20)/100.
			arrivals: []Arrival{arrival("a", 4, 0, 100), arrival("b", 4, 0, 60), arrival("large", 8, 10, 20), arrival("last", 1, 100, 1)},
			want: map[Rule]Replay{
				Packed: {Rule: Packed, To: 100, Busiest: 10, AverageOccupied: 1.2, MostOccupied: 2, Pods: 4, GPUPods: 4},
				Spread: {Rule: Spread, To: 100, Busiest: 10, AverageOccupied: 1.8, MostOccupied: 2, Pods: 4, GPUPods: 4, Waited: 1, AverageWait: 50},
			},
		},
		"too large for ever, and one without GPUs": {
			nodes:    nodesNamed(1),
			arrivals: []Arrival{arrival("huge", 9, 5, 10), arrival("web", 0, 5, 10)},
			want: map[Rule]Replay{
				Packed: {Rule: Packed, From: 5, To: 5, Busiest: 5, Pods: 2, GPUPods: 1, Waited: 1, NeverPlaced: 1},
				Spread: {Rule: Spread, From: 5, To: 5, Busiest: 5, Pods: 2, GPUPods: 1, Waited: 1, NeverPlaced: 1},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for rule, want := range tc.want {
				got, err := RunReplay(t.Context(), cluster(tc.nodes), tc.arrivals, rule, config.Default(), Options{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Replay{}, "Nodes")); diff != "" {
					t.Errorf("%s:\n%s", rule, diff)
				}
			}
		})
	}
}

// The picture is of the busiest moment: what ends then is gone, what begins is there.
func TestReplayPicture(t *testing.T) {
	arrivals := []Arrival{arrival("a", 2, 0, 10), arrival("b", 3, 10, 10), arrival("web", 0, 10, 10), arrival("c", 1, 30, -1)}
	got, err := RunReplay(t.Context(), cluster(nodesNamed(1)), arrivals, Packed, config.Default(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Node{{Name: "n1", GPUs: []GPUs{{Resource: nvidia, Allocatable: 8, Allocated: 3}}, Pods: 1, OtherPods: 1}}
	if diff := cmp.Diff(want, got.Nodes); diff != "" {
		t.Error(diff)
	}
}

// What ends at a moment does not add to what begins then: 4, 4, then 4+2 GPUs.
func TestBusiest(t *testing.T) {
	arrivals := []Arrival{arrival("a", 4, 0, 10), arrival("b", 4, 10, 10), arrival("c", 2, 15, -1)}
	if got := busiest(arrivals, []int64{4, 4, 2}); got != 15 {
		t.Errorf("busiest at %d, not 15", got)
	}
}

// Bound pods of the state that do not arrive are there from the start.
func TestReplayBesideBoundPods(t *testing.T) {
	s := cluster(nodesNamed(2), gpuPod("daemon", "n1", 1, ownedBy("DaemonSet")), gpuPod("stays", "n2", 7))
	got, err := RunReplay(t.Context(), s, []Arrival{arrival("a", 1, 0, -1), arrival("b", 7, 0, -1)}, Packed, config.Default(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var used []int64
	for _, n := range got.Nodes {
		used = append(used, n.GPUs[0].Allocated)
	}
	if diff := cmp.Diff([]int64{8, 8}, used); diff != "" {
		t.Error(diff)
	}
}

// Both rules place all pods that there is room for, and the same arrivals give the
// same replay.
func TestReplayProperties(t *testing.T) {
	for seed := range 10 {
		var arrivals []Arrival
		for i := range 200 {
			// Sizes and times without a pattern, by multiplication modulo primes.
			size := 1 << ((i*31 + seed) % 97 % 4)
			arrivals = append(arrivals, arrival(fmt.Sprintf("p%d", i), size, int64((i*53+seed)%211), int64((i*71)%89)))
		}
		occupied := map[Rule]float64{}
		for _, rule := range []Rule{Packed, Spread} {
			var runs []Replay
			for range 2 {
				r, err := RunReplay(t.Context(), cluster(nodesNamed(40)), arrivals, rule, config.Default(), Options{})
				if err != nil {
					t.Fatal(err)
				}
				runs = append(runs, r)
			}
			if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
				t.Fatalf("seed %d, %s: two runs differ:\n%s", seed, rule, diff)
			}
			for _, n := range runs[0].Nodes {
				if n.GPUs[0].Allocated > 8 {
					t.Errorf("seed %d, %s: %s holds %d of 8 GPUs", seed, rule, n.Name, n.GPUs[0].Allocated)
				}
			}
			if runs[0].NeverPlaced > 0 {
				t.Errorf("seed %d, %s: %d pods never found room", seed, rule, runs[0].NeverPlaced)
			}
			occupied[rule] = runs[0].AverageOccupied
		}
		if occupied[Packed] >= occupied[Spread] {
			t.Errorf("seed %d: %.1f nodes when packed, %.1f when spread", seed, occupied[Packed], occupied[Spread])
		}
	}
}
