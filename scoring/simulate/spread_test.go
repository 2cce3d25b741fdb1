package simulate

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// The Spreader goes where the prediction of the scheduler's points is highest.
func TestSpreaderFollowsThePrediction(t *testing.T) {
	c := clustertest.New(t, nil,
		clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "8"), clustertest.WithCPU("192", "2304Gi")),
		clustertest.GPUNode("c", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Tainted("spot", corev1.TaintEffectPreferNoSchedule)),
		clustertest.GPUNode("d", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Labelled("pool", "fast")), clustertest.GPUNode("e", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Cordoned),
	)
	s := newSpreader(c.Config, c.Index, c.Version())
	landed := map[string]int{}
	for i := range 12 {
		p := clustertest.GPUPod(fmt.Sprintf("p%d", i), clustertest.List(clustertest.NVIDIA, "1", "cpu", "8", "memory", "64Gi"))
		if i%4 == 3 {
			p = clustertest.GPUPod(fmt.Sprintf("p%d", i), clustertest.List(clustertest.NVIDIA, "1", "cpu", "2", "memory", "200Gi"), clustertest.Preferring(50, "pool", "fast"))
		}
		points, reason := c.Predict(p)
		if reason != steering.ReasonNone {
			t.Fatal(reason)
		}
		got := s.Place(p)
		var most, of int64
		for _, n := range points {
			most = max(most, n.Total)
			if n.Name == got {
				of = n.Total
			}
		}
		if got == "" || of != most {
			t.Errorf("pod %d went to %q with %d points, and the most are %d", i, got, of, most)
		}
		landed[got]++
		clustertest.On(got)(p)
		c.SetPod(p)
	}
	if len(landed) < 3 || landed["c"] > 0 || landed["e"] > 0 {
		t.Errorf("pods per node %v", landed)
	}
}

func TestSpreaderWithoutRoom(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "2")))
	s := newSpreader(c.Config, c.Index, c.Version())
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"too many GPUs":   {clustertest.GPUPod("gpus", clustertest.List(clustertest.NVIDIA, "3")), ""},
		"too many CPUs":   {clustertest.GPUPod("cpus", clustertest.List("cpu", "97")), ""},
		"without GPUs":    {clustertest.GPUPod("web", clustertest.List("cpu", "1")), "a"},
		"without a thing": {clustertest.GPUPod("idle", clustertest.List()), "a"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.Place(tc.pod); got != tc.want {
				t.Errorf("on %q, not %q", got, tc.want)
			}
		})
	}
}

// In a large cluster the scheduler examines a part and goes on from there the next
// time, so that pods reach all parts.
func TestSpreaderSamples(t *testing.T) {
	var objects []any
	for i := range 400 {
		objects = append(objects, clustertest.GPUNode(fmt.Sprintf("node-%03d", i), clustertest.List(clustertest.NVIDIA, "8")))
	}
	c := clustertest.New(t, nil, objects...)
	s := newSpreader(c.Config, c.Index, c.Version())
	// 400 nodes: 50-400/125 = 47 %, 188 nodes. Five searches end at 940, modulo 400.
	for range 5 {
		if s.Place(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"))) == "" {
			t.Fatal("no node")
		}
	}
	if want := 5 * 188 % 400; s.next != want {
		t.Errorf("the next search begins at %d, not %d", s.next, want)
	}
}
