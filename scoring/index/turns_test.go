package index_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Pods of a new kind that come together go through the nodes once, also in a namespace that
// has its share of pools: its unused ones give way to a kind that several pods wait for.
func TestPodsOfANewKindShareItsPool(t *testing.T) {
	for _, share := range []bool{false, true} {
		c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "1000", "pods", "1000")))
		for n := range pool.MaxPools {
			if share {
				c.DecideOn(ofKind("team", n))
			}
		}
		var mu sync.Mutex
		made := 0
		release := make(chan struct{})
		ctx := whileMaking{t.Context(), func() {
			mu.Lock()
			made++
			mu.Unlock()
			<-release
		}}
		const pods = 30
		var running sync.WaitGroup
		for i := range pods {
			pod := numbered(ofKind("team", 100), i)
			running.Go(func() {
				if d := c.Decide(ctx, requestFor(pod)); d.Target() != "n" {
					t.Errorf("%+v", d)
				}
			})
		}
		waitUntil(func() bool { return c.Waiting()["team"] == pods })
		close(release)
		running.Wait()
		// With its share, the first pod came when nobody else waited: its pool was not kept.
		if most := map[bool]int{false: 1, true: 2}[share]; made > most || !c.KeepsPool(ofKind("team", 100)) {
			t.Errorf("share: %v: %d pools made for %d pods, want %d at most, the last one kept", share, made, pods, most)
		}
	}
}

// Namespaces take turns, whoever came first, and one that nobody waits with goes on.
func TestNamespacesTakeTurns(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "100")))
	turns, next := make(chan string), make(chan struct{})
	var running sync.WaitGroup
	decide := func(namespace string, n int) {
		pod := ofKind(namespace, n)
		running.Go(func() {
			if d := c.Decide(whileMaking{t.Context(), func() { turns <- namespace; <-next }}, requestFor(pod)); d.Target() != "n" {
				t.Errorf("%s %d: %+v", namespace, n, d)
			}
		})
	}
	for n := range 10 {
		decide("attacker", n)
	}
	order := []string{<-turns}
	waitUntil(func() bool { return c.Waiting()["attacker"] == 10 })
	for n := range 3 {
		decide("team", n)
	}
	waitUntil(func() bool { return c.Waiting()["team"] == 3 })
	for range 12 {
		next <- struct{}{}
		order = append(order, <-turns)
	}
	next <- struct{}{}
	running.Wait()
	// Each of the team waits for one of the attacker, or two if that one stood in line first.
	if at := slices.Index(order, "team"); at > 2 {
		t.Errorf("turns %v, want the team after two at most", order)
	}
	last := 0
	for i, namespace := range order {
		if namespace == "team" {
			last = i
		}
	}
	if last > 2*3 {
		t.Errorf("turns %v, want the team every second time", order)
	}
	if left := c.Waiting(); len(left) != 0 {
		t.Errorf("%v still wait", left)
	}
}

// Of pods of more new kinds than a namespace may have waiting at once, those beyond are left
// alone, so that they keep nobody from being read. Pods of the same kinds, and those of
// others, wait.
func TestNewKindsAtOnce(t *testing.T) {
	c := clustertest.New(t, func(cfg *config.Configuration) { cfg.Server.MaxConcurrentRequests = 4 }, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "100")))
	begun, release := make(chan struct{}, 10), make(chan struct{})
	ctx := whileMaking{t.Context(), func() { begun <- struct{}{}; <-release }}
	var running sync.WaitGroup
	waits := func(r scoring.Request) {
		t.Helper()
		before := c.Waiting()[r.Namespace]
		running.Go(func() {
			if d := c.Decide(ctx, r); d.Target() != "n" {
				t.Errorf("%s: %+v", r.Pod.Name, d)
			}
		})
		waitUntil(func() bool { return c.Waiting()[r.Namespace] == before+1 })
	}
	leftAlone := func(r scoring.Request) {
		t.Helper()
		if d := c.Decide(ctx, r); d.Reason != steering.ReasonTimeout {
			t.Errorf("%s: %+v, want the reason Timeout", r.Pod.Name, d)
		}
	}
	dry := requestFor(ofKind("team", 2))
	dry.DryRun = true
	waits(requestFor(ofKind("team", 1)))
	<-begun
	waits(requestFor(ofKind("team", 2))) // two kinds are a half of four requests
	leftAlone(requestFor(ofKind("team", 3)))
	leftAlone(dry) // it cannot share a pool with others
	again := requestFor(ofKind("team", 2))
	again.UID = "again"
	waits(again)
	waits(requestFor(ofKind("other", 1)))
	close(release)
	running.Wait()
	if d := c.DecideOn(ofKind("team", 3)); d.Target() != "n" {
		t.Errorf("when nobody waits: %+v", d)
	}
}

// waitUntil waits for what other goroutines do.
func waitUntil(done func() bool) {
	for !done() {
		runtime.Gosched()
	}
}
