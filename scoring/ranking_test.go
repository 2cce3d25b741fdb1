package scoring_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

func TestRanking(t *testing.T) {
	// fill puts a pod with n GPUs on a node.
	fill := func(node, n string) *corev1.Pod {
		return clustertest.GPUPod("on-"+node, clustertest.List(clustertest.NVIDIA, n), clustertest.On(node))
	}
	tests := map[string]struct {
		change  func(*config.Configuration)
		objects []any
		pod     *corev1.Pod
		want    []string
	}{
		"occupied before empty, then fewest left": {
			objects: []any{
				clustertest.GPUNode("empty1", clustertest.List(clustertest.NVIDIA, "1")), clustertest.GPUNode("full", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("half", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("small", clustertest.List(clustertest.NVIDIA, "4")),
				fill("full", "8"), fill("half", "4"), fill("small", "2"),
			},
			// left after one more: small 4-2-1=1, half 8-4-1=3, empty1 0 but empty
			want: []string{"small", "half", "empty1"},
		},
		"smallest empty node first": {
			objects: []any{clustertest.GPUNode("e8", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("e1", clustertest.List(clustertest.NVIDIA, "1")), clustertest.GPUNode("e4", clustertest.List(clustertest.NVIDIA, "4"))},
			want:    []string{"e1", "e4", "e8"},
		},
		"largest empty node first": {
			change:  func(c *config.Configuration) { c.Ranking.EmptyNodes = config.LargestFirst },
			objects: []any{clustertest.GPUNode("e8", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("e1", clustertest.List(clustertest.NVIDIA, "1")), clustertest.GPUNode("e4", clustertest.List(clustertest.NVIDIA, "4")), clustertest.GPUNode("used", clustertest.List(clustertest.NVIDIA, "16")), fill("used", "1")},
			want:    []string{"used", "e8", "e4", "e1"},
		},
		"devices 4,4,2: a 2-device pod goes to the 2-node": {
			objects: []any{clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "4")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "4")), clustertest.GPUNode("c", clustertest.List(clustertest.NVIDIA, "2"))},
			pod:     clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "2")),
			want:    []string{"c", "?", "?"},
		},
		"highest share, whatever is left": {
			change: func(c *config.Configuration) { c.Ranking.Strategy = config.StrategyMostAllocated },
			objects: []any{
				clustertest.GPUNode("e1", clustertest.List(clustertest.NVIDIA, "1")), clustertest.GPUNode("big", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("small", clustertest.List(clustertest.NVIDIA, "4")),
				fill("big", "6"), fill("small", "2"),
			},
			// scores: big 100*6/8=75, small 100*2/4=50, e1 0
			want: []string{"big", "small", "e1"},
		},
		"untolerated PreferNoSchedule last": {
			objects: []any{
				clustertest.GPUNode("busy", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Tainted("x", corev1.TaintEffectPreferNoSchedule)), fill("busy", "3"),
				clustertest.GPUNode("empty", clustertest.List(clustertest.NVIDIA, "4")),
			},
			want: []string{"empty", "busy"},
		},
		"tolerated PreferNoSchedule does not matter": {
			objects: []any{
				clustertest.GPUNode("busy", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Tainted("x", corev1.TaintEffectPreferNoSchedule)), fill("busy", "3"),
				clustertest.GPUNode("empty", clustertest.List(clustertest.NVIDIA, "4")),
			},
			pod:  clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), clustertest.Tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists})),
			want: []string{"busy", "empty"},
		},
		"equal GPUs: least CPU and memory left": {
			objects: []any{
				clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "4"), clustertest.WithCPU("96", "1152Gi")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "4"), clustertest.WithCPU("48", "576Gi")),
				clustertest.GPUPod("on-a", clustertest.List(clustertest.NVIDIA, "1", "cpu", "1", "memory", "1Gi"), clustertest.On("a")), clustertest.GPUPod("on-b", clustertest.List(clustertest.NVIDIA, "1", "cpu", "1", "memory", "1Gi"), clustertest.On("b")),
			},
			want: []string{"b", "a"},
		},
		"a DaemonSet's GPU pod counts as used but does not make a node occupied": {
			objects: []any{
				clustertest.GPUNode("agent", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUPod("d", clustertest.List(clustertest.NVIDIA, "7"), clustertest.On("agent"), clustertest.OwnedByDaemonSet),
				clustertest.GPUNode("busy", clustertest.List(clustertest.NVIDIA, "8")), fill("busy", "1"),
			},
			want: []string{"busy", "agent"},
		},
		"a draining node is no target": {
			objects: []any{
				clustertest.GPUNode("drain", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUPod("d", clustertest.List(clustertest.NVIDIA, "7"), clustertest.On("drain"), clustertest.Terminating),
				clustertest.GPUNode("busy", clustertest.List(clustertest.NVIDIA, "8")), fill("busy", "1"),
			},
			want: []string{"busy", "drain"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := tc.pod
			if pod == nil {
				pod = clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"))
			}
			c := clustertest.New(t, tc.change, tc.objects...)
			d := c.DecideOn(pod)
			got := rankOf(t, c, pod)
			for i := range tc.want {
				if tc.want[i] == "?" && i < len(got) {
					tc.want[i] = got[i]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("order (-want +got):\n%s\ndecision: %+v", diff, d)
			}
		})
	}
}

// rankOf returns the whole order, also of nodes that get no weight.
func rankOf(t *testing.T, c *clustertest.Cluster, pod *corev1.Pod) []string {
	t.Helper()
	if _, reason := demand.Of(pod, c.Config.Resources); reason != steering.ReasonNone {
		t.Fatal(reason)
	}
	// A reservation of no node releases the one that the pod has.
	if _, err := c.Reserve(t.Context(), &index.Reservation{UID: pod.UID, Namespace: pod.Namespace}); err != nil {
		t.Fatal(err)
	}
	q := c.QueryOf(pod)
	v := c.MustView(t, q)
	f, _ := c.Search(t.Context(), &v, q, true)
	return f.Ranked
}

// The tie-break is the same whatever order the nodes came in, and scatters nodes
// that are neighbours by name.
func TestRankingTies(t *testing.T) {
	var forward, backward []any
	for i := range 64 {
		forward = append(forward, clustertest.GPUNode(fmt.Sprintf("node-%03d", i), clustertest.List(clustertest.NVIDIA, "8")))
		backward = append(backward, clustertest.GPUNode(fmt.Sprintf("node-%03d", 63-i), clustertest.List(clustertest.NVIDIA, "8")))
	}
	pod := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"))
	a, b := clustertest.Names(clustertest.New(t, nil, forward...).DecideOn(pod)), clustertest.Names(clustertest.New(t, nil, backward...).DecideOn(pod))
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("order depends on history:\n%s", diff)
	}
	neighbours := 0
	for i := 1; i < len(a); i++ {
		if a[i] == fmt.Sprintf("node-%s", next(a[i-1])) {
			neighbours++
		}
	}
	if neighbours > 2 {
		t.Errorf("%d of %d listed nodes follow their neighbour by name: %v", neighbours, len(a), a)
	}
}

func next(name string) string {
	var i int
	_, _ = fmt.Sscanf(name, "node-%d", &i)
	return fmt.Sprintf("%03d", i+1)
}
