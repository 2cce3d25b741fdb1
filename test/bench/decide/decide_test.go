package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// Both systems give right answers on every shape, and ours leaves nothing behind.
func TestSystemsDecide(t *testing.T) {
	for i := range shapes {
		s := &shapes[i]
		t.Run(s.name, func(t *testing.T) {
			const nodes = 300
			product, err := newOurs(s, nodes)
			if err != nil {
				t.Fatal(err)
			}
			naive := newNaive(s, nodes)
			for range 3 {
				got, want := product.decide(s.incoming()), naive.decide(s.incoming())
				for _, target := range []string{got, want} {
					if err := s.checkTarget(target); err != nil {
						t.Error(err)
					}
				}
				// Both take a node in use rather than an empty one.
				if a, b := usedOn(s, got), usedOn(s, want); (a > 0) != (b > 0) {
					t.Errorf("ours takes %s with %d GPUs in use, the naive one %s with %d", got, a, want, b)
				}
			}
			if size := product.index.Size(); size.Reservations != 0 {
				t.Errorf("%d reservations are left", size.Reservations)
			}
		})
	}
}

func usedOn(s *shape, node string) int {
	for i := range 300 {
		if nodeName(i) == node {
			return s.used(i)
		}
	}
	return 0
}

func TestCheckTarget(t *testing.T) {
	for target, want := range map[string]string{
		"node-00001": "",                 // empty, in the rare pool
		"node-00003": "in pool common",   //
		"":           "nothing fits",     //
		"elsewhere":  `target "elsewher`, //
	} {
		err := shapes[2].checkTarget(target)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", target, err, want)
		}
	}
}

// For benchstat: the same as the command, without a baseline.
func BenchmarkDecide(b *testing.B) {
	for i := range shapes {
		for _, nodes := range []int{100, 5000} {
			b.Run(fmt.Sprintf("%s/%d", shapes[i].name, nodes), func(b *testing.B) {
				if nodes < shapes[i].least {
					b.Skip("the shape needs more nodes")
				}
				product, err := newOurs(&shapes[i], nodes)
				if err != nil {
					b.Fatal(err)
				}
				pod := shapes[i].incoming()
				b.ReportAllocs()
				for b.Loop() {
					if err := shapes[i].checkTarget(product.decide(pod)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// Parallel decisions, which take the index's lock in turn.
func BenchmarkDecideParallel(b *testing.B) {
	product, err := newOurs(&shapes[0], 5000)
	if err != nil {
		b.Fatal(err)
	}
	pod := shapes[0].incoming()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			product.scorer.Decide(b.Context(), scoring.Request{Pod: pod, Namespace: namespace, UID: "u", DryRun: true})
		}
	})
}
