package main

import (
	"fmt"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/naive"
)

// Both systems give right answers on every shape, and ours leaves nothing behind.
func TestSystemsDecide(t *testing.T) {
	for i := range cluster.Shapes {
		s := &cluster.Shapes[i]
		t.Run(s.Name, func(t *testing.T) {
			const nodes = 300
			product, err := newOurs(s, nodes)
			if err != nil {
				t.Fatal(err)
			}
			scan := naive.New(s, nodes)
			for range 3 {
				got, want := product.Decide(s.Incoming()), scan.Decide(s.Incoming())
				for _, target := range []string{got, want} {
					if err := s.CheckTarget(target); err != nil {
						t.Error(err)
					}
				}
				// Both take a node in use rather than an empty one.
				if a, b := usedOn(s, got), usedOn(s, want); (a > 0) != (b > 0) {
					t.Errorf("ours takes %s with %d GPUs in use, the naive one %s with %d", got, a, want, b)
				}
			}
			if size := product.ix.Size(); size.Reservations != 0 {
				t.Errorf("%d reservations are left", size.Reservations)
			}
		})
	}
}

func usedOn(s *cluster.Shape, node string) int {
	for i := range 300 {
		if cluster.NodeName(i) == node {
			return s.Used(i)
		}
	}
	return 0
}

// For benchstat: the same as the command, without a baseline.
func BenchmarkDecide(b *testing.B) {
	for i := range cluster.Shapes {
		sizes := []int{100, 5000}
		if i == 0 {
			sizes = append(sizes, 15000) // of each shape they would take minutes to build
		}
		for _, nodes := range sizes {
			b.Run(fmt.Sprintf("%s/%d", cluster.Shapes[i].Name, nodes), func(b *testing.B) {
				if nodes < cluster.Shapes[i].Least {
					b.Skip("the shape needs more nodes")
				}
				product, err := newOurs(&cluster.Shapes[i], nodes)
				if err != nil {
					b.Fatal(err)
				}
				pod := cluster.Shapes[i].Incoming()
				b.ReportAllocs()
				for b.Loop() {
					if err := cluster.Shapes[i].CheckTarget(product.Decide(pod)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// Parallel decisions, which take the index's lock in turn.
func BenchmarkDecideParallel(b *testing.B) {
	product, err := newOurs(&cluster.Shapes[0], 5000)
	if err != nil {
		b.Fatal(err)
	}
	pod := cluster.Shapes[0].Incoming()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			product.scorer.Decide(b.Context(), scoring.Request{Pod: pod, Namespace: cluster.Namespace, UID: "u", DryRun: true})
		}
	})
}

// For ten minutes after an upgrade of the control plane weights are right for two
// versions; beside one version.
func BenchmarkDecideVersions(b *testing.B) {
	for _, minors := range [][]uint{{36}, {35, 36}} {
		b.Run(fmt.Sprint(len(minors)), func(b *testing.B) {
			product, err := newOurs(&cluster.Shapes[0], 5000)
			if err != nil {
				b.Fatal(err)
			}
			for _, minor := range minors {
				product.scorer.Version().See(config.MinorVersion{Major: 1, Minor: minor})
			}
			pod := cluster.Shapes[0].Incoming()
			b.ReportAllocs()
			for b.Loop() {
				if err := cluster.Shapes[0].CheckTarget(product.Decide(pod)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
