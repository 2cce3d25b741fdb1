package scoring

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func TestPredict(t *testing.T) {
	// a: empty. After the pod (24 of 96 CPU, 288 of 1152 GiB) 75% are free:
	// fit 75; cpu and memory stay in balance: 50+(50+100-100)/2 = 75.
	// b: half of the CPU is used, and 200 MiB, since the pod there states no
	// memory. Fit (25+74)/2 = 49. Shares before 50% and 0: balance 75; after 75%
	// and 25%: balance 75; so 75. One soft taint of two:
	// 100 - 100*1/2 = 50. It matches the user's lighter term: 100*40/60 = 66.
	// c: two soft taints, the most: 0; the heavier term: 100.
	c := newCluster(t, nil,
		gpuNode("c", list(nvidia, "8"), tainted("x", corev1.TaintEffectPreferNoSchedule), tainted("y", corev1.TaintEffectPreferNoSchedule), labelled("zone", "z3")),
		gpuNode("b", list(nvidia, "8"), tainted("x", corev1.TaintEffectPreferNoSchedule), labelled("zone", "z2")),
		gpuNode("a", list(nvidia, "8")),
		gpuNode("full", list(nvidia, "1")),
		gpuPod("used", list("cpu", "48"), on("b")),
	)
	pod := gpuPod("pod", list(nvidia, "2", "cpu", "24", "memory", "288Gi"), preferring(40, "zone", "z2"), preferring(60, "zone", "z3"))
	want := []NodePoints{
		{Name: "a", NodeAffinity: 0, TaintToleration: 100, NodeResourcesFit: 75, BalancedAllocation: 75, Total: 300 + 75 + 75},
		{Name: "b", NodeAffinity: 66, TaintToleration: 50, NodeResourcesFit: 49, BalancedAllocation: 75, Total: 132 + 150 + 49 + 75},
		{Name: "c", NodeAffinity: 100, TaintToleration: 0, NodeResourcesFit: 75, BalancedAllocation: 75, Total: 200 + 75 + 75},
	}
	got, reason := c.Predict(pod)
	if reason != ReasonNone {
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
	c := newCluster(t, nil, gpuNode("a", list(nvidia, "8")))
	for name, tc := range map[string]struct {
		pod        *corev1.Pod
		wantReason Reason
		wantNodes  int
	}{
		"no GPU":       {pod: gpuPod("p", list("cpu", "1")), wantReason: ReasonNoGPU},
		"nothing fits": {pod: gpuPod("p", list(nvidia, "9")), wantReason: ReasonNothingFits},
		"pinned": {pod: gpuPod("p", list(nvidia, "1"), func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "a"}
		}), wantReason: ReasonPinned, wantNodes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			points, reason := c.Predict(tc.pod)
			if reason != tc.wantReason || len(points) != tc.wantNodes {
				t.Errorf("reason %q and %d nodes, want %q and %d", reason, len(points), tc.wantReason, tc.wantNodes)
			}
		})
	}
	index, err := NewIndex(config.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, reason := NewScorer(config.Default(), index).Predict(gpuPod("p", list(nvidia, "1"))); reason != ReasonNotSynced {
		t.Errorf("reason %q before the index is synced", reason)
	}
}
