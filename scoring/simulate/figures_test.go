package simulate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

func TestCount(t *testing.T) {
	whole := func(allocatable, allocated int64) []GPUs {
		return []GPUs{{Resource: nvidia, Allocatable: allocatable, Allocated: allocated}}
	}
	for name, tc := range map[string]struct {
		nodes []Node
		want  Figures
	}{
		"nothing": {want: Figures{}},
		"one of each": {
			nodes: []Node{
				{Name: "full", GPUs: whole(8, 8), Pods: 1},
				{Name: "half", GPUs: whole(8, 5), Pods: 2},
				{Name: "empty", GPUs: whole(8, 0)},
				{Name: "others", GPUs: whole(4, 0), OtherPods: 1},
				{Name: "daemon", GPUs: whole(8, 1)}, // its GPU is a DaemonSet's
			},
			// Free: 0, 3, 8, 4, 7. Pods of 2 GPUs: 0+1+4+2+3; of 4: 0+0+2+1+1; of 8: 1.
			want: Figures{Nodes: 5, Occupied: 2, Empty: 3, Removable: 2, Resources: []ResourceFigures{{
				Resource: nvidia, Nodes: 5, Occupied: 2, Allocatable: 36, Allocated: 14, Stranded: 3, LargestPod: 8,
				Fits: []Fit{{1, 22}, {2, 10}, {4, 4}, {8, 1}},
			}}},
		},
		"out of service": {
			nodes: []Node{
				{Name: "cordoned", GPUs: whole(8, 2), Pods: 1, Out: nodes.Cordoned},
				{Name: "broken", GPUs: whole(2, 3), Pods: 1}, // a GPU went unhealthy
			},
			// Nothing fits: the free GPUs of the first are not to be had.
			want: Figures{Nodes: 2, Occupied: 2, Out: 1, Resources: []ResourceFigures{{
				Resource: nvidia, Nodes: 2, Occupied: 2, Allocatable: 10, Allocated: 5,
				Fits: []Fit{{1, 0}, {2, 0}, {4, 0}, {8, 0}},
			}}},
		},
		"names are not added up": {
			nodes: []Node{{Name: "mig", Pods: 1, GPUs: []GPUs{
				{Resource: "nvidia.com/mig-1g.5gb", Allocatable: 7, Allocated: 3}, {Resource: "nvidia.com/mig-2g.10gb", Allocatable: 3},
			}}},
			want: Figures{Nodes: 1, Occupied: 1, Resources: []ResourceFigures{
				{Resource: "nvidia.com/mig-1g.5gb", Nodes: 1, Occupied: 1, Allocatable: 7, Allocated: 3, Stranded: 4, LargestPod: 4, Fits: []Fit{{1, 4}, {2, 2}, {4, 1}, {8, 0}}},
				{Resource: "nvidia.com/mig-2g.10gb", Nodes: 1, Occupied: 1, Allocatable: 3, Stranded: 3, LargestPod: 3, Fits: []Fit{{1, 3}, {2, 1}, {4, 0}, {8, 0}}},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Count(tc.nodes)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is on a node decides whether it can be removed.
func TestNow(t *testing.T) {
	s := cluster(nodesNamed(5),
		gpuPod("train", "n1", 2),
		gpuPod("exporter", "n2", 0, ownedBy("DaemonSet")),
		gpuPod("kube-proxy", "n2", 0, ownedBy("Node")),
		gpuPod("web", "n3", 0),
		gpuPod("leaves", "n4", 1, ending),
		gpuPod("burn-in", "n5", 1, ownedBy("DaemonSet")),
		gpuPod("waits", "", 1),
	)
	sim := simulation(t, s, Options{})
	if diff := cmp.Diff(PodCounts{Running: 3, Pending: 1, Others: 3}, sim.Counts()); diff != "" {
		t.Error(diff)
	}
	type use struct {
		Allocated, Pods int64
		Other           int
		Removable       bool
	}
	got := map[string]use{}
	for _, n := range sim.Now() {
		got[n.Name] = use{n.GPUs[0].Allocated, n.Pods, n.OtherPods, n.Removable()}
	}
	want := map[string]use{
		"n1": {2, 1, 0, false}, "n2": {0, 0, 0, true}, "n3": {0, 0, 1, false}, "n4": {1, 0, 1, false}, "n5": {1, 0, 0, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
