package pool_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
)

// Pods of one kind share a pool, and there are never too many pools.
func TestPoolsAreBounded(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Labelled("pool", "1")))
	plain := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"))
	asked := []*corev1.Pod{plain}
	for i := range 3 * pool.MaxPools {
		pod := clustertest.GPUPod(fmt.Sprint("p", i), clustertest.List(clustertest.NVIDIA, "1"))
		pod.Spec.Tolerations = []corev1.Toleration{{Key: fmt.Sprint("t", i)}}
		asked = append(asked, pod)
		c.DecideOn(pod)
		c.DecideOn(clustertest.GPUPod(fmt.Sprint("q", i), clustertest.List(clustertest.NVIDIA, "1"))) // used again and again
	}
	kept := 0
	for _, pod := range asked {
		if c.KeepsPool(pod) {
			kept++
		}
	}
	if kept != pool.MaxPools {
		t.Errorf("%d pools, want %d", kept, pool.MaxPools)
	}
	if !c.KeepsPool(plain) {
		t.Error("the pool that is used all the time was dropped")
	}
}

// A pool is for all pods of a kind, whatever else the first one asked for.
func TestPoolIsForItsKind(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("both", clustertest.List(clustertest.NVIDIA, "8", "nvidia.com/mig-1g.5gb", "8")), clustertest.GPUNode("one", clustertest.List(clustertest.NVIDIA, "4")))
	c.DecideOn(clustertest.GPUPod("first", clustertest.List(clustertest.NVIDIA, "1", "cpu", "90", "nvidia.com/mig-1g.5gb", "1")))
	if d := c.DecideOn(clustertest.GPUPod("second", clustertest.List(clustertest.NVIDIA, "1"))); !slices.Contains(clustertest.Names(d), "one") {
		t.Errorf("decision %+v, want the node without the other resource too", d)
	}
}

// A median between two kinds of pods may move with every pod. The pools stay.
func TestUnitStays(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "64")))
	first := clustertest.GPUPod("first", clustertest.List(clustertest.NVIDIA, "1"))
	c.DecideOn(first)
	if !c.KeepsPool(first) {
		t.Fatal("there is no pool: the test shows nothing")
	}
	for i := range 20 {
		c.SetPod(clustertest.GPUPod(fmt.Sprint("p", i), clustertest.List(clustertest.NVIDIA, "1", "cpu", fmt.Sprint(1+i%2*20), "memory", "1Gi"), clustertest.On("n")))
		// A decision about a pod of another kind, which would not bring the first pool back.
		c.MustView(t, c.QueryOf(clustertest.GPUPod("probe", clustertest.List(clustertest.NVIDIA, "2"))))
		if !c.KeepsPool(first) {
			t.Fatal("the pools were made anew")
		}
	}
	// The unit is seen in the key of a node.
	packing := nodes.PackingOf(c.StateOf("n"), clustertest.NVIDIA)
	before := c.MustLook(t, c.QueryOf(first)).Key(packing)
	c.Clock = c.Clock.Add(pool.UnitAge)
	c.DecideOn(clustertest.GPUPod("later", clustertest.List(clustertest.NVIDIA, "1")))
	if c.MustLook(t, c.QueryOf(first)).Key(packing) == before {
		t.Error("the unit never follows")
	}
}
