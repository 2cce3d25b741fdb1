package scoring

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The Spreader goes where the prediction of the scheduler's points is highest.
func TestSpreaderFollowsThePrediction(t *testing.T) {
	c := newCluster(t, nil,
		gpuNode("a", list(nvidia, "8")), gpuNode("b", list(nvidia, "8"), withCPU("192", "2304Gi")),
		gpuNode("c", list(nvidia, "8"), tainted("spot", corev1.TaintEffectPreferNoSchedule)),
		gpuNode("d", list(nvidia, "8"), labelled("pool", "fast")), gpuNode("e", list(nvidia, "8"), cordoned),
	)
	s := NewSpreader(c.Scorer.cfg, c.Index, c.Scorer.version)
	landed := map[string]int{}
	for i := range 12 {
		p := gpuPod(fmt.Sprintf("p%d", i), list(nvidia, "1", "cpu", "8", "memory", "64Gi"))
		if i%4 == 3 {
			p = gpuPod(fmt.Sprintf("p%d", i), list(nvidia, "1", "cpu", "2", "memory", "200Gi"), preferring(50, "pool", "fast"))
		}
		points, reason := c.Predict(p)
		if reason != ReasonNone {
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
		on(got)(p)
		c.SetPod(p)
	}
	if len(landed) < 3 || landed["c"] > 0 || landed["e"] > 0 {
		t.Errorf("pods per node %v", landed)
	}
}

func TestSpreaderWithoutRoom(t *testing.T) {
	c := newCluster(t, nil, gpuNode("a", list(nvidia, "2")))
	s := NewSpreader(c.Scorer.cfg, c.Index, c.Scorer.version)
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"too many GPUs":   {gpuPod("gpus", list(nvidia, "3")), ""},
		"too many CPUs":   {gpuPod("cpus", list("cpu", "97")), ""},
		"without GPUs":    {gpuPod("web", list("cpu", "1")), "a"},
		"without a thing": {gpuPod("idle", list()), "a"},
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
		objects = append(objects, gpuNode(fmt.Sprintf("node-%03d", i), list(nvidia, "8")))
	}
	c := newCluster(t, nil, objects...)
	s := NewSpreader(c.Scorer.cfg, c.Index, c.Scorer.version)
	// 400 nodes: 50-400/125 = 47 %, 188 nodes. Five searches end at 940, modulo 400.
	for range 5 {
		if s.Place(gpuPod("p", list(nvidia, "1"))) == "" {
			t.Fatal("no node")
		}
	}
	if want := 5 * 188 % 400; s.next != want {
		t.Errorf("the next search begins at %d, not %d", s.next, want)
	}
}
