package index_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// whileMaking is a context that does something when it is asked while a pool is made, which
// is once for up to 64 nodes: all states that the pool is made of were taken before.
type whileMaking struct {
	context.Context
	do func()
}

// Err implements context.Context.
func (c whileMaking) Err() error {
	callers := make([]uintptr, 4)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for more := true; more; {
		var frame runtime.Frame
		if frame, more = frames.Next(); strings.HasSuffix(frame.Function, "/pool.Make") {
			c.do()
		}
	}
	return c.Context.Err()
}

// ofKind is a pod of the n-th kind in a namespace: each has a toleration of its own.
func ofKind(namespace string, n int) *corev1.Pod {
	key := fmt.Sprint(namespace, "-", n)
	return clustertest.GPUPod(key, clustertest.List(clustertest.NVIDIA, "1"),
		clustertest.Tolerating(corev1.Toleration{Key: key}), func(p *corev1.Pod) { p.Namespace = namespace })
}

func requestFor(pod *corev1.Pod) scoring.Request {
	return scoring.Request{Pod: pod, Namespace: pod.Namespace, UID: pod.UID}
}

// While a pool is made, nobody else waits: decisions about known kinds, dry runs of them,
// events and metrics. The decision itself is about what there is when the pool is done.
func TestNobodyWaitsWhileAPoolIsMade(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("full", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("gone", clustertest.List(clustertest.NVIDIA, "8")))
	known := clustertest.GPUPod("known", clustertest.List(clustertest.NVIDIA, "1"))
	c.DecideOn(known)
	others := func() {
		c.SetNode(clustertest.GPUNode("came", clustertest.List(clustertest.NVIDIA, "4")))
		c.SetPod(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "8"), clustertest.On("full")))
		c.DeleteNode("gone")
		if d := c.DecideOn(clustertest.GPUPod("other", clustertest.List(clustertest.NVIDIA, "1"))); d.Target() != "came" {
			t.Errorf("a pod of a known kind: %+v", d)
		}
		dry := requestFor(known)
		dry.DryRun = true
		if d := c.Decide(t.Context(), dry); d.Target() != "came" {
			t.Errorf("a dry run: %+v", d)
		}
		if got := c.Size().Nodes; got != 2 {
			t.Errorf("%d nodes", got)
		}
	}
	made := 0
	ctx := whileMaking{t.Context(), func() { made++; others() }}
	if d := c.Decide(ctx, requestFor(ofKind("team", 1))); d.Target() != "came" || len(d.Ranking) != 1 {
		t.Errorf("a pod of a new kind: %+v", d)
	}
	if made != 1 || !c.KeepsPool(ofKind("team", 1)) {
		t.Errorf("%d pools were made, want one that is kept", made)
	}
	dry := requestFor(ofKind("team", 2))
	dry.DryRun = true
	if d := c.Decide(ctx, dry); d.Reason != steering.ReasonNone || made != 2 || c.KeepsPool(ofKind("team", 2)) {
		t.Errorf("a dry run of a new kind: %+v; %d pools made", d, made)
	}
}

// More changes than a pool catches up with under the lock.
func TestPoolCatchesUpWithMuch(t *testing.T) {
	w := newWorld(t, nil)
	const nodes = 2 * pool.MaxBehind // below 64
	for i := range nodes - 1 {
		w.SetNode(clustertest.GPUNode(fmt.Sprint("n", i), clustertest.List(clustertest.NVIDIA, "8")))
	}
	ctx := whileMaking{t.Context(), func() {
		for i := range nodes - 1 {
			w.SetPod(clustertest.GPUPod(fmt.Sprint("p", i), clustertest.List(clustertest.NVIDIA, fmt.Sprint(1+i%8)), clustertest.On(fmt.Sprint("n", i))))
		}
	}}
	pod := ofKind("team", 1)
	w.noteKind(pod)
	// Seven of eight GPUs are taken on every eighth node, from the seventh on.
	if d := w.Decide(ctx, requestFor(pod)); len(d.Ranking) == 0 || d.Ranking[0].FreeAfter != 0 {
		t.Errorf("decision %+v, want a node that is full then", d)
	}
	w.checkPools()
}

// A decision that nobody waits for any more does nothing: its time was over before it came,
// or ends while its pool is made, or while it waits for its turn.
func TestNoPoolWhenTimeIsOver(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
	known := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"))
	c.DecideOn(known)
	before := c.DescribePools()
	check := func(when string, ctx context.Context, pod *corev1.Pod) {
		t.Helper()
		for _, dryRun := range []bool{false, true} {
			r := requestFor(pod)
			r.DryRun = dryRun
			if d := c.Decide(ctx, r); d.Reason != steering.ReasonTimeout || d.UID != pod.UID {
				t.Errorf("%s, dry run: %v: %+v, want the reason Timeout", when, dryRun, d)
			}
		}
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	check("before a known kind", late, known)
	check("before a new kind", late, ofKind("team", 1))
	late, cancel = context.WithCancel(t.Context())
	check("while the pool is made", whileMaking{late, cancel}, ofKind("team", 1))
	dry := requestFor(ofKind("team", 2))
	dry.DryRun = true
	c.Decide(whileMaking{t.Context(), func() {
		late, cancel := context.WithCancel(t.Context())
		go func() {
			waitUntil(func() bool { return c.Waiting()["team"] == 2 })
			cancel()
		}()
		check("while it waits", late, ofKind("team", 3))
	}}, dry)
	if after := c.DescribePools(); after != before {
		t.Errorf("pools %s, before %s", after, before)
	}
	if left := c.Waiting(); len(left) != 0 {
		t.Errorf("%v still wait", left)
	}
	if d := c.DecideOn(ofKind("team", 1)); d.Target() != "n" {
		t.Errorf("afterwards: %+v", d)
	}
}

// Pools that are made while events come from all sides are as if they had been made after
// the last one, and what is used is what is charged.
func TestPoolsMadeInParallel(t *testing.T) {
	w := newWorld(t, nil)
	const kinds, nodes = 100, 40
	for i := range nodes {
		w.SetNode(clustertest.GPUNode(fmt.Sprint("n", i), clustertest.List(clustertest.NVIDIA, "8")))
	}
	for n := range kinds {
		w.noteKind(ofKind("team", n))
		w.noteKind(ofKind("other", n))
	}
	var running sync.WaitGroup
	for seed := range uint64(4) {
		running.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for i := range 300 {
				node := fmt.Sprint("n", random.IntN(nodes))
				switch random.IntN(10) {
				case 0:
					w.DeleteNode(node)
				case 1:
					w.SetNode(clustertest.GPUNode(node, clustertest.List(clustertest.NVIDIA, fmt.Sprint(1+random.IntN(8)))))
				case 2, 3:
					w.DeletePod(clustertest.GPUPod(fmt.Sprint("p", seed, i-1), nil).UID)
				default:
					w.SetPod(clustertest.GPUPod(fmt.Sprint("p", seed, i), clustertest.List(clustertest.NVIDIA, "1"), clustertest.On(node)))
				}
			}
		})
		running.Go(func() {
			random := rand.New(rand.NewPCG(seed, 2))
			for i := range 100 {
				r := requestFor(numbered(ofKind([]string{"team", "other"}[seed%2], random.IntN(kinds)), seed, i))
				r.DryRun = i%5 == 0
				w.Decide(t.Context(), r)
			}
		})
	}
	running.Wait()
	w.checkPools()
	w.checkSums()
	if pools, _, _, _ := w.Pools(); len(pools) != pool.MaxPools {
		t.Errorf("%d pools", len(pools))
	}
}

// numbered is a copy of a pod that has a UID of its own.
func numbered(pod *corev1.Pod, n ...any) *corev1.Pod {
	pod.UID = types.UID(fmt.Sprint(pod.UID, "-", n))
	return pod
}

// A query that comes again, since the target was taken, has its pool already if that was not
// kept, and finds in it what happened meanwhile.
func TestQueryComesAgain(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "1")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "1")))
	for n := range pool.MaxPools { // nothing fits, so nothing is reserved
		pod := ofKind("team", n)
		pod.Spec.Containers[0].Resources.Limits = clustertest.List(clustertest.NVIDIA, "2")
		pod.Spec.Containers[0].Resources.Requests = nil
		c.DecideOn(pod)
	}
	made := 0
	ctx := whileMaking{t.Context(), func() { made++ }}
	q := c.QueryOf(ofKind("team", 100))
	view := func() (names []string) {
		v, err := c.View(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		v.Pool.Entries.Ascend(func(e pool.Entry) bool {
			names = append(names, e.State.Name)
			return true
		})
		return names
	}
	if got := view(); len(got) != 2 {
		t.Errorf("nodes %v, want both", got)
	}
	c.SetPod(clustertest.GPUPod("taken", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("a")))
	if got := view(); !slices.Equal(got, []string{"b"}) || made != 1 {
		t.Errorf("nodes %v, want b; %d pools made, want 1", got, made)
	}
	err := c.ReserveLocked(ctx, q, func(*index.View) *index.Reservation {
		return &index.Reservation{UID: "u", Namespace: q.Namespace, Demand: q.Demand, Listed: []string{"b"}}
	})
	if err != nil || c.UsedOn("b") != 1 || made != 1 {
		t.Errorf("reserved with error %v: %d used on b; %d pools made, want 1", err, c.UsedOn("b"), made)
	}
}
