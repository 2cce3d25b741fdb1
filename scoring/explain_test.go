package scoring_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// explained are nodes of every kind, and a pod for two GPUs.
func explained(t *testing.T) *clustertest.Cluster {
	return clustertest.New(t, nil,
		clustertest.GPUNode("empty", clustertest.List(clustertest.NVIDIA, "8")),
		clustertest.GPUNode("half", clustertest.List(clustertest.NVIDIA, "8")),
		clustertest.GPUNode("full", clustertest.List(clustertest.NVIDIA, "8")),
		clustertest.GPUNode("busy", clustertest.List(clustertest.NVIDIA, "8"), clustertest.WithCPU("4", "16Gi")),
		clustertest.GPUNode("cordoned", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Cordoned),
		clustertest.GPUNode("unready", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Unready),
		clustertest.GPUNode("tainted", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Tainted("x", corev1.TaintEffectNoSchedule)),
		clustertest.GPUNode("cpu", nil),
		clustertest.GPUPod("a", clustertest.List(clustertest.NVIDIA, "4", "cpu", "6", "memory", "2Gi"), clustertest.On("half")),
		clustertest.GPUPod("b", clustertest.List(clustertest.NVIDIA, "7"), clustertest.On("full")),
		clustertest.GPUPod("c", clustertest.List(clustertest.NVIDIA, "1", "cpu", "3"), clustertest.On("busy")),
	)
}

// inUse are the GPUs of a node, of which so many are allocated.
func inUse(allocated, allocatable int64) []nodes.ResourceUse {
	return []nodes.ResourceUse{{Name: clustertest.NVIDIA, Allocatable: allocatable, Allocated: allocated}}
}

func TestExplain(t *testing.T) {
	c := explained(t)
	got := c.Explain(t.Context(), scoring.Request{Pod: clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "2", "cpu", "2")), Namespace: "team", UID: "new"})
	const gib = 1 << 30
	want := []scoring.CandidateNode{
		// 4 of 8 in use: 100*4/8 = 50; 8-4-2 = 2 left
		{Name: "half", GPUs: inUse(4, 8), Score: 50, FreeAfter: 2, FreeMilliCPU: 90_000, FreeMemory: 1150 * gib},
		{Name: "empty", GPUs: inUse(0, 8), FreeAfter: 6, FreeMilliCPU: 96_000, FreeMemory: 1152 * gib},
	}
	if diff := cmp.Diff(want, got.Candidates); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	wantOut := []scoring.LeftOutNode{
		// 1 of 4 CPUs is free
		{Name: "busy", Reason: nodes.Insufficient, Lacking: []nodes.Shortage{{Name: "cpu", Requested: 2000, Free: 1000}}},
		{Name: "cordoned", Reason: nodes.Cordoned},
		{Name: "cpu", Reason: nodes.NoResource},
		{Name: "full", Reason: nodes.Insufficient, Lacking: []nodes.Shortage{{Name: clustertest.NVIDIA, Requested: 2, Free: 1}}},
		{Name: "tainted", Reason: nodes.Tainted},
		{Name: "unready", Reason: nodes.NotReady},
	}
	if diff := cmp.Diff(wantOut, got.LeftOut); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if got.Decision.Target() != "half" || len(got.Decision.Ranking) != 2 {
		t.Errorf("decision %+v", got.Decision)
	}
	if n := c.Size().Reservations; n != 0 {
		t.Errorf("explaining reserved for %d pods", n)
	}
}

// The order of the candidates is that of the ranking, whatever the user prefers.
func TestExplainOrder(t *testing.T) {
	for name, options := range map[string][]clustertest.PodOption{
		"plain":      nil,
		"preference": {clustertest.Preferring(20, "zone", "z1")},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New(t, nil,
				clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Labelled("zone", "z1")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Labelled("zone", "z2")),
				clustertest.GPUNode("c", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Labelled("zone", "z1")), clustertest.GPUPod("x", clustertest.List(clustertest.NVIDIA, "3"), clustertest.On("c")))
			got := c.Explain(t.Context(), scoring.Request{Pod: clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "1"), options...), Namespace: "team", UID: "new"})
			if len(got.Candidates) != 3 || len(got.Decision.Ranking) == 0 {
				t.Fatalf("got %+v", got)
			}
			for i, n := range got.Decision.Ranking {
				if got.Candidates[i].Name != n.Name {
					t.Errorf("candidate %d is %s, ranked is %s", i, got.Candidates[i].Name, n.Name)
				}
			}
		})
	}
}

// Pods that no decision is made for have a reason, and no nodes where there is
// nothing to compare.
func TestExplainWithoutDecision(t *testing.T) {
	c := explained(t)
	cpuOnly := clustertest.GPUPod("new", clustertest.List("cpu", "1"))
	if got := c.Explain(t.Context(), scoring.Request{Pod: cpuOnly}); got.Decision.Reason != steering.ReasonNoGPU || got.Candidates != nil || got.LeftOut != nil {
		t.Errorf("no GPU: %+v", got)
	}
	large := clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "9"))
	if got := c.Explain(t.Context(), scoring.Request{Pod: large}); got.Decision.Reason != steering.ReasonNothingFits || len(got.LeftOut) != 8 {
		t.Errorf("too large: %+v", got)
	}
}

func TestNodes(t *testing.T) {
	c := explained(t)
	d := c.Decide(t.Context(), scoring.Request{Pod: clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "3")), Namespace: "team", UID: "new"})
	if d.Target() != "half" {
		t.Fatalf("target %q", d.Target())
	}
	want := []nodes.Use{
		{Name: "busy", GPUs: inUse(1, 8), Pods: 1},
		{Name: "cordoned", GPUs: inUse(0, 8), Out: nodes.Cordoned},
		{Name: "empty", GPUs: inUse(0, 8)},
		{Name: "full", GPUs: inUse(7, 8), Pods: 1},
		// 4 of the pod that is there, 3 reserved
		{Name: "half", GPUs: inUse(7, 8), Pods: 2, InFlight: 3},
		{Name: "tainted", GPUs: inUse(0, 8)},
		{Name: "unready", GPUs: inUse(0, 8), Out: nodes.NotReady},
	}
	if diff := cmp.Diff(want, c.Nodes()); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}
