package scoring_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

func TestSegmentLength(t *testing.T) {
	tests := map[string]struct {
		nodes, feasible int
		percentage      int64
		tailTerms       int
		want            int
	}{
		"all are examined":                      {nodes: 100, feasible: 100, want: 0},
		"few of many nodes are feasible":        {nodes: 5000, feasible: 400, want: 0}, // looks for 500
		"200 nodes, half examined":              {nodes: 200, feasible: 200, want: 50},
		"1,000 nodes, 42 percent":               {nodes: 1000, feasible: 1000, want: 210},
		"5,000 nodes, 10 percent":               {nodes: 5000, feasible: 5000, want: 250},
		"15,000 nodes, 5 percent":               {nodes: 15000, feasible: 15000, want: 375}, // 40 segments
		"no more terms than configured":         {nodes: 15000, feasible: 15000, tailTerms: 30, want: 500},
		"no tail":                               {nodes: 15000, feasible: 15000, tailTerms: -1, want: 0},
		"the scheduler examines all by setting": {nodes: 5000, feasible: 5000, percentage: 100, want: 0},
		"the scheduler examines 2 percent":      {nodes: 5000, feasible: 5000, percentage: 2, want: 125}, // 100 are not enough for 50 segments with 40 terms
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Scheduler.PercentageOfNodesToScore = tc.percentage
			if tc.tailTerms != 0 {
				cfg.Weights.TailTerms = max(tc.tailTerms, 0)
			}
			if got := scoring.SegmentLength(&cfg, tc.nodes, tc.feasible); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// Whichever nodes are feasible, and wherever its window begins, the scheduler
// finds a listed node in it.
func TestEveryWindowHoldsAListedNode(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	sampled := 0
	for range 40 {
		count := 101 + random.IntN(1500)
		full, used := random.IntN(4), random.IntN(4)
		var objects []any
		for i := range count {
			name := fmt.Sprintf("n%04d", i)
			objects = append(objects, clustertest.GPUNode(name, clustertest.List(clustertest.NVIDIA, "8")))
			// What is full or in use are stretches of neighbours, about a ninth of
			// the nodes each.
			switch stretch := i * 9 / count; {
			case stretch < full:
				objects = append(objects, clustertest.GPUPod("full-"+name, clustertest.List(clustertest.NVIDIA, "8"), clustertest.On(name)))
			case stretch < full+used:
				objects = append(objects, clustertest.GPUPod("used-"+name, clustertest.List(clustertest.NVIDIA, "1"), clustertest.On(name)))
			}
		}
		c := clustertest.New(t, nil, objects...)
		d := c.DecideOn(clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "1")))
		listed := map[string]bool{}
		for _, n := range d.Ranking {
			listed[n.Name] = true
		}
		if d.Tail > 0 {
			sampled++
		}
		for start := 0; start < count; start += 1 + random.IntN(20) {
			feasible := func(i int) bool { return i*9/count >= full }
			if !windowHolds(listed, start, count, feasible, scheduler.Examined(&c.Config.Scheduler, count)) {
				t.Fatalf("%d nodes, %d/9 full, %d/9 in use: the window from %d has none of %v", count, full, used, start, clustertest.Names(d))
			}
		}
	}
	if sampled < 10 {
		t.Errorf("only %d of 40 clusters needed a tail", sampled)
	}
}

// windowHolds tells whether the window of the wanted feasible nodes from start on
// has a listed one.
func windowHolds(listed map[string]bool, start, count int, feasible func(int) bool, wanted int) bool {
	for i, found := 0, 0; i < count && found < wanted; i++ {
		at := (start + i) % count
		if !feasible(at) {
			continue
		}
		found++
		if listed[fmt.Sprintf("n%04d", at)] {
			return true
		}
	}
	return false
}

// Node pools that differ in memory, one after another in the scheduler's node order:
// each part of it has a listed node, although packing prefers one pool.
func TestTailReachesEveryPool(t *testing.T) {
	for _, pools := range []int{1, 2, 10} {
		const nodes = 2000
		c := clustertest.New(t, nil)
		for i := range nodes {
			pool := i * pools / nodes
			c.SetNode(clustertest.GPUNode(fmt.Sprintf("pool%02d-n%04d", pool, i), clustertest.List(clustertest.NVIDIA, "8"), clustertest.WithCPU("96", fmt.Sprint(1000+10*pool, "Gi"))))
		}
		pod := clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "1", "cpu", "8", "memory", "64Gi"))
		q := c.QueryOf(pod)
		v := c.MustView(t, q)
		segments, uncovered := c.Segments(t.Context(), &v, q)
		if segments == 0 || uncovered > 0 {
			t.Errorf("%d pools: %d of %d segments have no listed node", pools, uncovered, segments)
		}
	}
}

// Pods that are expected on one node get the same tail, so that replicas stay alike;
// those expected on another get another one, so that many pods on their way do not
// fill the same few nodes of it.
func TestTailFollowsTarget(t *testing.T) {
	c := clustertest.New(t, func(cfg *config.Configuration) { cfg.Weights.MaxTerms = 2 })
	for i := range 600 {
		c.SetNode(clustertest.GPUNode(fmt.Sprintf("n%d", i), clustertest.List(clustertest.NVIDIA, "8")))
	}
	tails := map[string][]string{} // by target
	for i := range 4 * 8 {
		d := c.DecideOn(clustertest.GPUPod(fmt.Sprintf("p%d", i), clustertest.Usual))
		var tail []string
		for _, n := range d.Ranking[len(d.Ranking)-d.Tail:] {
			tail = append(tail, n.Name)
		}
		if len(tail) == 0 {
			t.Fatalf("pod %d has no tail: the test shows nothing", i)
		}
		if before, ok := tails[d.Target()]; ok && !slices.Equal(before, tail) {
			t.Errorf("pod %d has the tail %v, one before it with the same target %v", i, tail, before)
		}
		tails[d.Target()] = tail
	}
	if len(tails) != 4 {
		t.Fatalf("%d targets for 32 pods on nodes with 8 GPUs, want 4", len(tails))
	}
	listed := map[string]bool{}
	most := 0
	for _, tail := range tails {
		most = max(most, len(tail))
		for _, name := range tail {
			listed[name] = true
		}
	}
	if len(listed) <= 2*most {
		t.Errorf("all tails together list %d nodes, one up to %d: they do not differ enough", len(listed), most)
	}
}
