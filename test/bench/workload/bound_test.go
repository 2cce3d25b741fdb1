package workload

import "testing"

func TestLowerBound(t *testing.T) {
	nodes := func(sizes ...int64) []Amounts {
		var out []Amounts
		for _, s := range sizes {
			out = append(out, Amounts{GPUs: s})
		}
		return out
	}
	tests := map[string]struct {
		nodes []Amounts
		pods  []int64
		want  Bound
	}{
		"nothing": {nodes(8, 8), nil, Bound{}},
		// ceil(9/8) = 2 nodes of 8
		"equal nodes": {nodes(8, 8, 8), times(9, int64(1)), Bound{Nodes: 2, GPUs: 16}},
		// 3 pods of 1: one node of 8 is the fewest nodes, 2+1 the fewest GPUs
		"small nodes are cheaper": {nodes(8, 2, 1), times(3, int64(1)), Bound{Nodes: 1, GPUs: 3}},
		// no node of 1: 3 is rounded up to the gcd of 2 and 8
		"rounded to what there is": {nodes(8, 2, 2), times(3, int64(1)), Bound{Nodes: 1, GPUs: 4}},
		// M(2) = 5 -> 6; the one node of 2 leaves 4 to the node of 8: M(8) = 8;
		// that is enough for all.
		"small nodes run out": {nodes(8, 2), times(5, int64(1)), Bound{Nodes: 1, GPUs: 8}},
		// M(2) = 9 -> 10, carry 10-2*2 = 6, M(8) = 8, total max(10, 8) = 10
		"large one plus small one": {nodes(8, 2, 2), times(9, int64(1)), Bound{Nodes: 2, GPUs: 10}},
		// The pod of 8 needs its own node; the pod of 1 the node of 1:
		// D(8) = 8, M(1) = 9, total 9.
		"large pod": {nodes(8, 8, 1), []int64{8, 1}, Bound{Nodes: 2, GPUs: 9}},
		// D(8) = 8 + 4 (no node of 4) = 12 -> 16
		"pod of 4 on nodes of 8": {nodes(8, 8, 2), []int64{8, 4}, Bound{Nodes: 2, GPUs: 16}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := LowerBound(tc.nodes, tc.pods); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestLowerBoundIsExact compares with trying all sets of nodes, for sizes that
// divide each other.
func TestLowerBoundIsExact(t *testing.T) {
	r := newRand(1, 5)
	sizes := []int64{1, 2, 4, 8}
	for round := range 500 {
		var nodes []Amounts
		for range 1 + r.IntN(8) {
			nodes = append(nodes, Amounts{GPUs: sizes[r.IntN(4)]})
		}
		var pods []int64
		for range r.IntN(10) {
			pods = append(pods, sizes[r.IntN(4)])
		}
		want, possible := leastByTrying(nodes, pods)
		if !possible {
			continue
		}
		if got := LowerBound(nodes, pods).GPUs; got != want {
			t.Errorf("round %d: nodes %v, pods %v: got %d, want %d", round, nodes, pods, got, want)
		}
	}
}

// leastByTrying tries every set of nodes.
func leastByTrying(nodes []Amounts, pods []int64) (least int64, possible bool) {
	for set := range 1 << len(nodes) {
		var free []int64
		var sum int64
		for i, n := range nodes {
			if set>>i&1 == 1 {
				free = append(free, n.GPUs)
				sum += n.GPUs
			}
		}
		if holds(free, pods) && (!possible || sum < least) {
			least, possible = sum, true
		}
	}
	return least, possible
}

// holds tells whether the pods fit, largest first, each on the fullest node; that
// is exact for sizes that divide each other.
func holds(free, pods []int64) bool {
	for _, size := range []int64{8, 4, 2, 1} {
		for _, pod := range pods {
			if pod != size {
				continue
			}
			at := -1
			for i, f := range free {
				if f >= pod && (at < 0 || f < free[at]) {
					at = i
				}
			}
			if at < 0 {
				return false
			}
			free[at] -= pod
		}
	}
	return true
}
