package scoring

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// clusterShape is a cluster for benchmarks.
type clusterShape struct {
	name string
	// gpus of the i-th node, and how many of them pods use.
	gpus, used func(i int) int
	// pool is the value of the i-th node's label "pool".
	pool func(i int) string
	// pod options of the pod to be placed.
	pod []podOption
	// wantNone: no node can take the pod.
	wantNone bool
	// least is the smallest cluster that makes sense.
	least int
}

var benchShapes = []clusterShape{
	{name: "homogeneous", gpus: always(8), used: halfFull(8)},
	// Sizes in the proportions of openb, see package workload in test/bench.
	{name: "openb", gpus: openbSize, used: func(i int) int { return halfFull(openbSize(i))(i) }},
	{name: "selector1percent", gpus: always(8), used: halfFull(8), least: 1000, pool: func(i int) string {
		if i%100 == 1 { // an empty one
			return "rare"
		}
		return "common"
	}, pod: []podOption{func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "rare"} }}},
	{name: "full", gpus: always(8), used: always(8), wantNone: true},
	{name: "empty", gpus: always(8), used: always(0)},
}

func always(n int) func(int) int { return func(int) int { return n } }

// halfFull fills the first half of the nodes, but for one GPU on every tenth, and
// leaves the others empty.
func halfFull(size int) func(int) int {
	return func(i int) int {
		switch {
		case i%2 == 1:
			return 0
		case i%10 == 0:
			return max(size-1, 0)
		default:
			return size
		}
	}
}

// openbSize is a node's GPUs in the proportions of the openb trace: of 1,213 nodes
// 29 % have 1 or 2, 8 % 4 and 63 % 8.
func openbSize(i int) int {
	switch i * 7919 % 100 {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13:
		return 1
	case 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28:
		return 2
	case 29, 30, 31, 32, 33, 34, 35, 36:
		return 4
	default:
		return 8
	}
}

// cluster builds the shape with so many nodes and, on each, CPU pods to make it
// 30 pods.
func (s *clusterShape) cluster(tb testing.TB, nodes int) *testCluster {
	tb.Helper()
	c := newCluster(tb, nil)
	gpuPods := gpuPod("", list(nvidia, "1", "cpu", "8", "memory", "64Gi"), on(""))
	cpuPods := gpuPod("", list("cpu", "100m", "memory", "128Mi"), on(""))
	set := func(pod *corev1.Pod, node string, j int) {
		pod.UID, pod.Spec.NodeName = types.UID(fmt.Sprintf("%s-%d", node, j)), node
		c.SetPod(pod) // keeps nothing of the pod
	}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		n := gpuNode(name, list(nvidia, fmt.Sprint(s.gpus(i))))
		if s.pool != nil {
			n.Labels["pool"] = s.pool(i)
		}
		c.SetNode(n)
		for j := range s.used(i) {
			set(gpuPods, name, j)
		}
		for j := s.used(i); j < 30; j++ {
			set(cpuPods, name, j)
		}
	}
	return c
}

var benchSizes = []int{100, 1000, 5000, 15000}

// BenchmarkDecide is one decision, its reservation included. The reservation is
// taken back by the pod's appearance and end, whose cost is part of the figure.
func BenchmarkDecide(b *testing.B) {
	for _, shape := range benchShapes {
		for _, nodes := range benchSizes {
			if nodes < shape.least {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", shape.name, nodes), func(b *testing.B) {
				c := shape.cluster(b, nodes)
				pod := gpuPod("new", list(nvidia, "1", "cpu", "8", "memory", "64Gi"), shape.pod...)
				runtime.GC() // of the building
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i++
					d := c.Decide(context.Background(), Request{Pod: pod, Namespace: "team", UID: types.UID(fmt.Sprint(i))})
					if (d.Target() == "") != shape.wantNone {
						b.Fatalf("decision %+v", d)
					}
					c.Index.mu.Lock()
					c.Index.release(types.UID(fmt.Sprint(i)), "team")
					c.Index.mu.Unlock()
				}
			})
		}
	}
}
