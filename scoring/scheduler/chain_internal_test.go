package scheduler

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

func TestChain(t *testing.T) {
	same := func(n int, r PointRange) []PointRange {
		out := make([]PointRange, n)
		for i := range out {
			out[i] = r
		}
		return out
	}
	tests := map[string]struct {
		points        []PointRange
		shared, first int64
		want          []int64
	}{
		"one node":  {points: same(1, PointRange{100, 100}), first: 100, want: []int64{100}},
		"none":      {first: 100, want: []int64{}},
		"no weight": {points: same(2, PointRange{0, 0}), first: 0, want: []int64{}},
		// gap = ceil((0-0+2)/2) = 1: 100, floor(99), floor(99*.99)=98, ...
		"equal nodes": {points: same(4, PointRange{0, 0}), first: 100, want: []int64{100, 99, 98, 97}},
		// gap = ceil((48+2)/2) = 25: 100, 75, floor(56.25), floor(42), floor(31.5), ...
		"the usual node": {points: same(8, PointRange{118, 166}), first: 100, want: []int64{100, 75, 56, 42, 31, 23, 17, 12}},
		// gap(1,2) = ceil((210-0+2)/2) = 106 > 100: the second cannot be listed.
		"no lead is large enough": {points: []PointRange{{0, 0}, {210, 210}}, first: 100, want: []int64{100}},
		// The second has 300 points less: gap = (0-300+2)/2 < 0, any smaller weight will do.
		"a node the scheduler dislikes anyway": {points: []PointRange{{300, 300}, {0, 0}}, first: 100, want: []int64{100, 99}},
		// gap(1,2) = ceil((0-100+2)/2) = -49: t(2) = 99. gap(1,3) = ceil((100-100+2)/2) = 1: 99.
		// gap(2,3) = ceil((100-0+2)/2) = 51: t(3) = floor(99*.49) = 48.
		"every earlier node counts": {points: []PointRange{{100, 100}, {0, 0}, {100, 100}}, first: 100, want: []int64{100, 99, 48}},
		// The 14th has 1, which leaves nothing for two more; 14 of 16 are enough.
		"more nodes than weights": {points: same(16, PointRange{118, 166}), first: 100, want: []int64{100, 75, 56, 42, 31, 23, 17, 12, 9, 6, 4, 3, 2, 1}},
		// Steps of ceil((190-132+2)/2) = 30 %: the 10th has 2 and the 11th 1. Eleven are
		// fewer than three quarters of 16, so that four share the 1.
		"far fewer weights than nodes": {points: same(16, PointRange{132, 190}), first: 100, want: []int64{100, 70, 49, 34, 23, 16, 11, 7, 4, 2, 1, 1, 1, 1}},
		// shared 40, first 9: t(1) = 49; gap 1: t(2) = min(48, floor(48.51)) = 48; t(3) = floor(47.52) = 47
		"beside the user's weights": {points: same(3, PointRange{0, 0}), shared: 40, first: 9, want: []int64{9, 8, 7}},
		// t(1) = 49; gap 25: t(2) = floor(36.75) < 40, no weight left.
		"the user's weights leave no room": {points: same(3, PointRange{118, 166}), shared: 40, first: 9, want: []int64{9}},
	}
	cfg := config.Default()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, chainWeights(&cfg, tc.points, tc.shared, tc.first)); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
		})
	}
}

func chainWeights(cfg *config.Configuration, points []PointRange, shared, first int64) []int64 {
	c := Chain{Cfg: cfg, Points: [][]PointRange{points}, Shared: shared, First: first}
	return c.Weigh().Weights
}

// Beyond the ordered nodes all share the largest weight that is right for each of
// them; a node that can have none is left out.
func TestChainTail(t *testing.T) {
	cfg := config.Default()
	cfg.Weights.MaxTerms = 2
	// gap(1,2) = 1: 99. Third: gap 11 to both, min(floor(100*.89), floor(99*.89)) = 88.
	// Fourth: gap 1: min(99, 98) and below 99: 98. Fifth: gap 101: none.
	c := Chain{Cfg: &cfg, Points: [][]PointRange{{{0, 0}, {0, 0}, {20, 20}, {0, 0}, {200, 200}}}, First: 100}
	want := Weights{Listed: []int{0, 1, 2, 3}, Weights: []int64{100, 99, 88, 88}, Tail: 2}
	if diff := cmp.Diff(want, c.Weigh()); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
}

// When the ordered nodes have used up all weights, the last of them joins the
// tail.
func TestChainTailNeedsRoom(t *testing.T) {
	cfg := config.Default()
	cfg.Weights.MaxTerms = 4
	// gap = ceil((70-0+2)/2) = 36 between any two: 100, 64, floor(64*.64) = 40, then
	// floor(40*.64) = 25, and so on. With 9 for the first: 9, 5, 3, 1, and the tail
	// would have floor(1*.64) = 0. With three in order it has 1, with the fourth.
	points := make([]PointRange, 6)
	for i := range points {
		points[i] = PointRange{0, 70}
	}
	c := Chain{Cfg: &cfg, Points: [][]PointRange{points}, First: 9}
	want := Weights{Listed: []int{0, 1, 2, 3, 4, 5}, Weights: []int64{9, 5, 3, 1, 1, 1}, Tail: 3}
	if diff := cmp.Diff(want, c.Weigh()); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
}

func TestEqualWeighting(t *testing.T) {
	cfg := config.Default()
	cfg.Weights.Weighting, cfg.Weights.MaxTerms = config.WeightingEqual, 3
	if diff := cmp.Diff([]int64{70, 70, 70}, chainWeights(&cfg, make([]PointRange, 5), 0, 70)); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
}

// The property the chain is built for: for any points within the ranges, the
// first feasible node of the list beats every later one, whichever of the
// earlier ones are full. Those of the tail have no order among themselves.
func TestChainOrderHolds(t *testing.T) {
	cfg := config.Default()
	cfg.Weights.MaxTerms = 100
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		points := make([]PointRange, 2+random.IntN(9))
		for i := range points {
			low := random.Int64N(200)
			points[i] = PointRange{low, low + random.Int64N(60)}
		}
		cfg.Scheduler.PluginWeights.NodeAffinity = 1 + random.Int64N(3)
		var shared, first int64 = 0, steering.MaxWeight
		if random.IntN(2) == 0 {
			shared, first = random.Int64N(200), 1+random.Int64N(steering.MaxWeight)
		}
		c := Chain{Cfg: &cfg, Points: [][]PointRange{points}, Shared: shared, First: first}
		w := c.Weigh()
		listed := make([]PointRange, len(w.Listed))
		for i, node := range w.Listed {
			listed[i] = points[node]
		}
		for k := range len(listed) - w.Tail {
			if problem := beatsAllLater(listed, w.Weights, shared, k, &cfg, random); problem != "" {
				t.Fatalf("points %v, shared %d, %+v: %s", points, shared, w, problem)
			}
		}
	}
}

// beatsAllLater scores as kube-scheduler does, with node k the first feasible.
func beatsAllLater(points []PointRange, weights []int64, shared int64, k int, cfg *config.Configuration, random *rand.Rand) string {
	total := func(i int) int64 {
		affinity := MaxNodeScore * (shared + weights[i]) / (shared + weights[k]) // DefaultNormalizeScore
		other := points[i].min + random.Int64N(points[i].max-points[i].min+1)
		return cfg.Scheduler.PluginWeights.NodeAffinity*affinity + other
	}
	for l := k + 1; l < len(weights); l++ {
		if a, b := total(k), total(l); a < b+cfg.Weights.Margin {
			return fmt.Sprintf("node %d has %d points, node %d has %d", k, a, l, b)
		}
	}
	return ""
}

func TestUnlistedMayWin(t *testing.T) {
	cfg := config.Default()
	tests := map[string]struct {
		unlisted       int64
		first          PointRange
		shared, weight int64
		want           bool
	}{
		// The lead is 2*100 = 200 points.
		"far behind":              {unlisted: 166, first: PointRange{118, 166}, weight: 100, want: false}, // 200-48 >= 2
		"exactly the margin":      {unlisted: 198, first: PointRange{0, 0}, weight: 100, want: false},
		"one point short":         {unlisted: 199, first: PointRange{0, 0}, weight: 100, want: true},
		"with the user's weights": {unlisted: 48, first: PointRange{0, 0}, shared: 90, weight: 9, want: true}, // lead 2*(100-90) = 20
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := Chain{Cfg: &cfg, Points: [][]PointRange{{tc.first}}, Shared: tc.shared}
			if got := c.MayLose(tc.weight, tc.shared, tc.unlisted); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestDivisions(t *testing.T) {
	for _, tc := range []struct{ x, y, floor, ceil int64 }{
		{7, 2, 3, 4}, {-7, 2, -4, -3}, {6, 2, 3, 3}, {-6, 2, -3, -3}, {0, 2, 0, 0},
	} {
		if f, c := floorDiv(tc.x, tc.y), ceilDiv(tc.x, tc.y); f != tc.floor || c != tc.ceil {
			t.Errorf("%d/%d: floor %d ceil %d, want %d %d", tc.x, tc.y, f, c, tc.floor, tc.ceil)
		}
	}
}
