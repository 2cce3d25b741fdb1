package scoring_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

func TestPredict(t *testing.T) {
	// a: empty. After the pod (24 of 96 CPU, 288 of 1152 GiB) 75% are free:
	// fit 75; cpu and memory stay in balance: 50+(50+100-100)/2 = 75.
	// b: half of the CPU is used, and 200 MiB, since the pod there states no
	// memory. Fit (25+74)/2 = 49. Shares before 50% and 0: balance 75; after 75%
	// and 25%: balance 75; so 75. One soft taint of two:
	// 100 - 100*1/2 = 50. It matches the user's lighter term: 100*40/60 = 66.
	// c: two soft taints, the most: 0; the heavier term: 100.
	c := clustertest.New(t, nil,
		clustertest.GPUNode("c", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Tainted("x", corev1.TaintEffectPreferNoSchedule), clustertest.Tainted("y", corev1.TaintEffectPreferNoSchedule), clustertest.Labelled("zone", "z3")),
		clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Tainted("x", corev1.TaintEffectPreferNoSchedule), clustertest.Labelled("zone", "z2")),
		clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "8")),
		clustertest.GPUNode("full", clustertest.List(clustertest.NVIDIA, "1")),
		clustertest.GPUPod("used", clustertest.List("cpu", "48"), clustertest.On("b")),
	)
	pod := clustertest.GPUPod("pod", clustertest.List(clustertest.NVIDIA, "2", "cpu", "24", "memory", "288Gi"), clustertest.Preferring(40, "zone", "z2"), clustertest.Preferring(60, "zone", "z3"))
	want := []scheduler.Points{
		{Name: "a", NodeAffinity: 0, TaintToleration: 100, NodeResourcesFit: 75, BalancedAllocation: 75, Total: 300 + 75 + 75},
		{Name: "b", NodeAffinity: 66, TaintToleration: 50, NodeResourcesFit: 49, BalancedAllocation: 75, Total: 132 + 150 + 49 + 75},
		{Name: "c", NodeAffinity: 100, TaintToleration: 0, NodeResourcesFit: 75, BalancedAllocation: 75, Total: 200 + 75 + 75},
	}
	got, reason := c.Predict(pod)
	if reason != steering.ReasonNone {
		t.Errorf("reason %q", reason)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if c.Size().Reservations != 0 {
		t.Error("predicting reserved something")
	}
}

func TestPredictReasons(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "8")))
	for name, tc := range map[string]struct {
		pod        *corev1.Pod
		wantReason steering.Reason
		wantNodes  int
	}{
		"no GPU":       {pod: clustertest.GPUPod("p", clustertest.List("cpu", "1")), wantReason: steering.ReasonNoGPU},
		"nothing fits": {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "9")), wantReason: steering.ReasonNothingFits},
		"pinned": {pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "a"}
		}), wantReason: steering.ReasonPinned, wantNodes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			points, reason := c.Predict(tc.pod)
			if reason != tc.wantReason || len(points) != tc.wantNodes {
				t.Errorf("reason %q and %d nodes, want %q and %d", reason, len(points), tc.wantReason, tc.wantNodes)
			}
		})
	}
	ix, err := index.New(config.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, reason := scoring.NewScorer(config.Default(), ix).Predict(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"))); reason != steering.ReasonNotSynced {
		t.Errorf("reason %q before the index is synced", reason)
	}
}
