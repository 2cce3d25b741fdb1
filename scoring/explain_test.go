package scoring

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// explained are nodes of every kind, and a pod for two GPUs.
func explained(t *testing.T) *testCluster {
	return newCluster(t, nil,
		gpuNode("empty", list(nvidia, "8")),
		gpuNode("half", list(nvidia, "8")),
		gpuNode("full", list(nvidia, "8")),
		gpuNode("busy", list(nvidia, "8"), withCPU("4", "16Gi")),
		gpuNode("cordoned", list(nvidia, "8"), cordoned),
		gpuNode("unready", list(nvidia, "8"), unready),
		gpuNode("tainted", list(nvidia, "8"), tainted("x", corev1.TaintEffectNoSchedule)),
		gpuNode("cpu", nil),
		gpuPod("a", list(nvidia, "4", "cpu", "6", "memory", "2Gi"), on("half")),
		gpuPod("b", list(nvidia, "7"), on("full")),
		gpuPod("c", list(nvidia, "1", "cpu", "3"), on("busy")),
	)
}

func TestExplain(t *testing.T) {
	c := explained(t)
	got := c.Explain(t.Context(), Request{Pod: gpuPod("new", list(nvidia, "2", "cpu", "2")), Namespace: "team", UID: "new"})
	const gib = 1 << 30
	want := []CandidateNode{
		// 4 of 8 in use: 100*4/8 = 50; 8-4-2 = 2 left
		{Name: "half", GPUs: []ResourceUse{{nvidia, 8, 4}}, Score: 50, FreeAfter: 2, FreeMilliCPU: 90_000, FreeMemory: 1150 * gib},
		{Name: "empty", GPUs: []ResourceUse{{nvidia, 8, 0}}, FreeAfter: 6, FreeMilliCPU: 96_000, FreeMemory: 1152 * gib},
	}
	if diff := cmp.Diff(want, got.Candidates); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	wantOut := []LeftOutNode{
		// 1 of 4 CPUs is free
		{Name: "busy", Reason: NodeInsufficient, Lacking: []Shortage{{"cpu", 2000, 1000}}},
		{Name: "cordoned", Reason: NodeCordoned},
		{Name: "cpu", Reason: NodeNoResource},
		{Name: "full", Reason: NodeInsufficient, Lacking: []Shortage{{nvidia, 2, 1}}},
		{Name: "tainted", Reason: NodeTainted},
		{Name: "unready", Reason: NodeNotReady},
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
	for name, options := range map[string][]podOption{
		"plain":      nil,
		"preference": {preferring(20, "zone", "z1")},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, nil,
				gpuNode("a", list(nvidia, "8"), labelled("zone", "z1")), gpuNode("b", list(nvidia, "4"), labelled("zone", "z2")),
				gpuNode("c", list(nvidia, "8"), labelled("zone", "z1")), gpuPod("x", list(nvidia, "3"), on("c")))
			got := c.Explain(t.Context(), Request{Pod: gpuPod("new", list(nvidia, "1"), options...), Namespace: "team", UID: "new"})
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
	cpuOnly := gpuPod("new", list("cpu", "1"))
	if got := c.Explain(t.Context(), Request{Pod: cpuOnly}); got.Decision.Reason != ReasonNoGPU || got.Candidates != nil || got.LeftOut != nil {
		t.Errorf("no GPU: %+v", got)
	}
	large := gpuPod("new", list(nvidia, "9"))
	if got := c.Explain(t.Context(), Request{Pod: large}); got.Decision.Reason != ReasonNothingFits || len(got.LeftOut) != 8 {
		t.Errorf("too large: %+v", got)
	}
}

func TestNodes(t *testing.T) {
	c := explained(t)
	d := c.Decide(t.Context(), Request{Pod: gpuPod("new", list(nvidia, "3")), Namespace: "team", UID: "new"})
	if d.Target() != "half" {
		t.Fatalf("target %q", d.Target())
	}
	want := []NodeUse{
		{Name: "busy", GPUs: []ResourceUse{{nvidia, 8, 1}}, Pods: 1},
		{Name: "cordoned", GPUs: []ResourceUse{{nvidia, 8, 0}}, Out: NodeCordoned},
		{Name: "empty", GPUs: []ResourceUse{{nvidia, 8, 0}}},
		{Name: "full", GPUs: []ResourceUse{{nvidia, 8, 7}}, Pods: 1},
		// 4 of the pod that is there, 3 reserved
		{Name: "half", GPUs: []ResourceUse{{nvidia, 8, 7}}, Pods: 2, InFlight: 3},
		{Name: "tainted", GPUs: []ResourceUse{{nvidia, 8, 0}}},
		{Name: "unready", GPUs: []ResourceUse{{nvidia, 8, 0}}, Out: NodeNotReady},
	}
	if diff := cmp.Diff(want, c.Nodes()); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}
