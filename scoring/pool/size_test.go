package pool_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
)

// All pools that there may be, of pods with the largest constraints that are allowed, take
// no more than is said, while their nodes fill up as well.
func TestMaxBytes(t *testing.T) {
	const nodeCount = 2000
	c := clustertest.New(t, nil)
	for i := range nodeCount {
		c.SetNode(clustertest.GPUNode(fmt.Sprint("n", i), clustertest.List(clustertest.NVIDIA, "8")))
	}
	c.DecideOn(clustertest.GPUPod("first", clustertest.List(clustertest.NVIDIA, "1"))) // what a first decision makes besides
	before := heap()
	for round := range 3 {
		for i := range pool.MaxPools {
			pod := clustertest.GPUPod(fmt.Sprint("p", round, "-", i), clustertest.List(clustertest.NVIDIA, "1"))
			for j := range 100 {
				key := fmt.Sprintf("%d-%d-%s", i, j, strings.Repeat("x", nodes.MaxConstraintBytes/100-20))
				pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
			}
			if d := c.DecideOn(pod); d.Target() == "" {
				t.Fatalf("reason %q", d.Reason)
			}
		}
	}
	took := heap() - before
	t.Logf("%d pools take %d bytes, %d per pool and node", pool.MaxPools, took, (took-pool.MaxPools*3*nodes.MaxConstraintBytes)/nodeCount/pool.MaxPools)
	if took > int64(pool.MaxBytes(nodeCount)) {
		t.Errorf("all pools take %d bytes, want at most %d", took, pool.MaxBytes(nodeCount))
	}
	runtime.KeepAlive(c)
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one has found to be unused
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
