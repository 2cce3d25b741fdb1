package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

func TestPack(t *testing.T) {
	// By creation: 3 opens a node, 3 joins (6 of 8), 5 opens another, 5 a third.
	// Largest first: 5 and 3, 5 and 3.
	mixed := []corev1.Pod{gpuPod("a", "n1", 3), gpuPod("b", "n2", 3), gpuPod("c", "n3", 5), gpuPod("d", "n4", 5)}
	for name, tc := range map[string]struct {
		nodes                 []corev1.Node
		pods                  []corev1.Pod
		wantNow               int
		wantCreation, wantBig int
		wantKept              map[string]steering.Reason
		prepare               func(*corev1.Pod) (*corev1.Pod, steering.Reason)
	}{
		"sizes": {nodes: nodesNamed(4), pods: mixed, wantNow: 4, wantCreation: 3, wantBig: 2},
		"one node is enough": {
			nodes:   nodesNamed(4),
			pods:    []corev1.Pod{gpuPod("a", "n1", 2), gpuPod("b", "n2", 2), gpuPod("c", "n3", 2), gpuPod("d", "n4", 2)},
			wantNow: 4, wantCreation: 1, wantBig: 1,
		},
		"those that stay": {
			nodes: nodesNamed(4),
			pods: []corev1.Pod{
				gpuPod("daemon", "n1", 1, ownedBy("DaemonSet")), gpuPod("pinned", "n2", 2, onlyOn("n2")),
				gpuPod("spread", "n3", 2), gpuPod("free", "n4", 2), gpuPod("ending", "n4", 2, ending),
			},
			prepare: func(p *corev1.Pod) (*corev1.Pod, steering.Reason) {
				if p.Name == "spread" {
					return nil, "Spread"
				}
				return p, steering.ReasonNone
			},
			// pinned, spread and free are on three nodes; free joins one of the two.
			wantNow: 3, wantCreation: 2, wantBig: 2,
			wantKept: map[string]steering.Reason{
				"team/daemon": ReasonDaemonSet, "team/ending": ReasonEnding, "team/spread": "Spread", "team/pinned": steering.ReasonPinned,
			},
		},
		"no other place": {
			// The node with 8 GPUs is cordoned and the pod on it fits nowhere else; the
			// small ones could, but 3+3 do not fit on a node with 4.
			nodes:   []corev1.Node{gpuNode("big", 8, cordoned), gpuNode("s1", 4), gpuNode("s2", 4)},
			pods:    []corev1.Pod{gpuPod("large", "big", 6), gpuPod("a", "s1", 3), gpuPod("b", "s2", 3)},
			wantNow: 3, wantCreation: 3, wantBig: 3,
			wantKept: map[string]steering.Reason{"team/large": steering.ReasonNothingFits},
		},
		"leaves a cordoned node": {
			nodes: []corev1.Node{gpuNode("old", 8, cordoned), gpuNode("new", 8)}, pods: []corev1.Pod{gpuPod("a", "old", 2)},
			wantNow: 1, wantCreation: 1, wantBig: 1,
		},
		"node gone": {
			nodes: nodesNamed(1), pods: []corev1.Pod{gpuPod("a", "n1", 1), gpuPod("lost", "n9", 1)},
			wantNow: 1, wantCreation: 1, wantBig: 1,
			wantKept: map[string]steering.Reason{"team/lost": ReasonNodeGone},
		},
		"no pods": {nodes: nodesNamed(2)},
	} {
		t.Run(name, func(t *testing.T) {
			sim := simulation(t, cluster(tc.nodes, tc.pods...), Options{Prepare: tc.prepare})
			before := sim.Now()
			if got := Count(before).Occupied; got != tc.wantNow {
				t.Errorf("%d nodes occupied now, not %d", got, tc.wantNow)
			}
			for order, want := range map[Order]int{ByCreation: tc.wantCreation, LargestFirst: tc.wantBig} {
				p := pack(t, sim, order)
				if got := Count(p.Nodes).Occupied; got != want {
					t.Errorf("%s: %d nodes occupied, not %d", order, got, want)
				}
				kept := map[string]steering.Reason{}
				for _, k := range p.Kept {
					kept[k.Pod] = k.Reason
				}
				if len(tc.wantKept) > 0 || len(kept) > 0 {
					if diff := cmp.Diff(tc.wantKept, kept); diff != "" {
						t.Errorf("%s: kept:\n%s", order, diff)
					}
				}
			}
			if diff := cmp.Diff(before, sim.Now()); diff != "" {
				t.Errorf("the simulation changed what it is about:\n%s", diff)
			}
		})
	}
}

// A pod that finds no room because others took it goes back to its node, and the
// others are placed around it.
func TestPackKeepsEveryPodOnANode(t *testing.T) {
	// By creation, 2 and 2 share a node (best fit: n1 and n2 are alike), 3 and 3 need
	// one each, of two with 5 GPUs: 2+2 leave 1 there, so the second 3 finds none.
	nodes := []corev1.Node{gpuNode("n1", 5), gpuNode("n2", 5)}
	s := cluster(nodes, gpuPod("a", "n1", 2), gpuPod("b", "n2", 2), gpuPod("c", "n1", 3), gpuPod("d", "n2", 3))
	p := pack(t, simulation(t, s, Options{}), ByCreation)
	want := []string{"team/d"}
	var kept []string
	for _, k := range p.Kept {
		kept = append(kept, k.Pod)
	}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("kept:\n%s", diff)
	}
	for _, n := range p.Nodes {
		if n.GPUs[0].Allocated != 5 {
			t.Errorf("%s has %d GPUs allocated, not 5", n.Name, n.GPUs[0].Allocated)
		}
	}
}

// A pod that finds no room only because a pinned one was taken away is not kept: it
// is tried again once that one is back.
func TestPackTriesAgainAroundPinnedPods(t *testing.T) {
	// Without the pinned pod, x opens the smaller b (2 of 3 left), y takes 3 of a's 5,
	// and nothing has 3 left for w. With it, a is in use: x and y join it, w gets b.
	nodes := []corev1.Node{gpuNode("a", 5), gpuNode("b", 3)}
	s := cluster(nodes, gpuPod("pinned", "a", 1, onlyOn("a")), gpuPod("x", "a", 1), gpuPod("y", "a", 3), gpuPod("w", "b", 3))
	p := pack(t, simulation(t, s, Options{}), ByCreation)
	if diff := cmp.Diff([]Kept{{Pod: "team/pinned", Node: "a", Reason: steering.ReasonPinned}}, p.Kept); diff != "" {
		t.Error(diff)
	}
}

func TestPendingFit(t *testing.T) {
	// 8 GPUs are free in all, but not together; packed, they are.
	s := cluster(nodesNamed(2), gpuPod("a", "n1", 4), gpuPod("b", "n2", 4), gpuPod("large", "", 8), gpuPod("another", "", 8))
	sim := simulation(t, s, Options{})
	if got := sim.PendingFitNow(t.Context()); got != 0 {
		t.Errorf("%d waiting pods fit now, not 0", got)
	}
	if got := pack(t, sim, ByCreation).PendingFit; got != 1 {
		t.Errorf("%d waiting pods fit when packed, not 1", got)
	}
}

func TestPackEndsWithTheContext(t *testing.T) {
	sim := simulation(t, cluster(nodesNamed(1), gpuPod("a", "n1", 1)), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sim.Pack(ctx, ByCreation); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// random makes a cluster by a seed: nodes of several sizes, some cordoned, with pods
// that fit.
func random(seed uint64, nodeCount int) *state.State {
	r := rand.New(rand.NewPCG(seed, 1))
	sizes := []int{2, 4, 8}
	var nodes []corev1.Node
	var all []corev1.Pod
	for i := range nodeCount {
		size := sizes[r.IntN(len(sizes))]
		n := gpuNode(fmt.Sprintf("n%03d", i), size)
		if r.IntN(10) == 0 {
			cordoned(&n)
		}
		nodes = append(nodes, n)
		for free := r.IntN(size + 1); free > 0; {
			gpus := 1 + r.IntN(free)
			free -= gpus
			p := gpuPod(fmt.Sprintf("p%d-%d", i, free), n.Name, gpus)
			switch r.IntN(12) {
			case 0:
				onlyOn(n.Name)(&p)
			case 1:
				ownedBy("DaemonSet")(&p)
			case 2:
				ending(&p)
			}
			all = append(all, p)
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return cluster(nodes, all...)
}

// Whatever the cluster: every pod is on one node, no node holds more than it has, no
// pod joins a cordoned node, and the same cluster gives the same packing.
func TestPackProperties(t *testing.T) {
	better := 0
	for seed := range uint64(40) {
		s := random(seed, 30)
		sim := simulation(t, s, Options{})
		for _, order := range []Order{ByCreation, LargestFirst} {
			p := pack(t, sim, order)
			if again := pack(t, simulation(t, s, Options{}), order); !cmp.Equal(p, again) {
				t.Fatalf("seed %d, %s: two packings of one cluster differ:\n%s", seed, order, cmp.Diff(p, again))
			}
			checkPacking(t, s, p)
			if Count(p.Nodes).Occupied < Count(sim.Now()).Occupied {
				better++
			}
		}
	}
	// Such clusters are half empty: if packing does not help, it is not packing.
	if better < 70 {
		t.Errorf("packing freed a node in %d of 80 cases", better)
	}
}

func checkPacking(t *testing.T, s *state.State, p Packing) {
	t.Helper()
	where := map[string]string{}
	for pod, node := range p.On {
		where[pod] = node
	}
	for _, k := range p.Kept {
		if _, twice := where[k.Pod]; twice {
			t.Errorf("%s is kept and placed", k.Pod)
		}
		where[k.Pod] = k.Node
	}
	used, cpu := map[string]int64{}, map[string]int64{}
	for i := range s.Pods {
		pod := &s.Pods[i]
		node := where[pod.Namespace+"/"+pod.Name]
		at := slices.IndexFunc(s.Nodes, func(n corev1.Node) bool { return n.Name == node })
		if at < 0 {
			t.Fatalf("%s is on no node", pod.Name)
		}
		if s.Nodes[at].Spec.Unschedulable && node != pod.Spec.NodeName {
			t.Errorf("%s joined cordoned %s", pod.Name, node)
		}
		requests := pod.Spec.Containers[0].Resources.Requests
		gpus := requests[nvidia]
		used[node] += gpus.Value()
		cpu[node] += requests.Cpu().Value()
	}
	if len(where) != len(s.Pods) {
		t.Errorf("%d pods were placed, of %d", len(where), len(s.Pods))
	}
	for _, n := range p.Nodes {
		if n.GPUs[0].Allocated > n.GPUs[0].Allocatable || n.GPUs[0].Allocated != used[n.Name] || cpu[n.Name] > 96 {
			t.Errorf("%s: %d of %d GPUs allocated, %d by its pods, with %d of 96 CPUs",
				n.Name, n.GPUs[0].Allocated, n.GPUs[0].Allocatable, used[n.Name], cpu[n.Name])
		}
	}
}

// The simulation ranks only one node, which must be the one that the webhook would
// rank first.
func TestRanksAsTheWebhook(t *testing.T) {
	s := random(7, 150)
	sim := simulation(t, s, Options{})
	full := scoring.NewScorer(config.Default(), sim.ix)
	for gpus := range 8 {
		pod := gpuPod(fmt.Sprintf("new-%d", gpus), "", gpus+1)
		request := scoring.Request{Pod: &pod, Namespace: "team", UID: pod.UID, DryRun: true}
		one, all := sim.scorer.Decide(t.Context(), request), full.Decide(t.Context(), request)
		if one.Target() != all.Target() || one.Target() == "" {
			t.Errorf("%d GPUs: %q, not %q", gpus+1, one.Target(), all.Target())
		}
	}
}

// BenchmarkPack is a large cluster: 5,000 nodes with 8 GPUs and 150,000 pods, of
// which 20,000 hold a GPU each, 4 on each node.
func BenchmarkPack(b *testing.B) {
	var nodes []corev1.Node
	var all []corev1.Pod
	for i := range 5000 {
		name := fmt.Sprintf("node-%04d", i)
		nodes = append(nodes, gpuNode(name, 8))
		for j := range 30 {
			gpus := 0
			if j < 4 {
				gpus = 1
			}
			all = append(all, gpuPod(fmt.Sprintf("pod-%04d-%02d", i, j), name, gpus))
		}
	}
	s := cluster(nodes, all...)
	for b.Loop() {
		sim := simulation(b, s, Options{})
		if got := Count(pack(b, sim, ByCreation).Nodes).Occupied; got != 2500 {
			b.Fatalf("20,000 pods on %d nodes with 8 GPUs, not 2,500", got)
		}
	}
}
