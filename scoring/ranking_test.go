package scoring

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func TestRanking(t *testing.T) {
	// fill puts a pod with n GPUs on a node.
	fill := func(node, n string) *corev1.Pod { return gpuPod("on-"+node, list(nvidia, n), on(node)) }
	tests := map[string]struct {
		change  func(*config.Configuration)
		objects []any
		pod     *corev1.Pod
		want    []string
	}{
		"occupied before empty, then fewest left": {
			objects: []any{
				gpuNode("empty1", list(nvidia, "1")), gpuNode("full", list(nvidia, "8")), gpuNode("half", list(nvidia, "8")), gpuNode("small", list(nvidia, "4")),
				fill("full", "8"), fill("half", "4"), fill("small", "2"),
			},
			// left after one more: small 4-2-1=1, half 8-4-1=3, empty1 0 but empty
			want: []string{"small", "half", "empty1"},
		},
		"smallest empty node first": {
			objects: []any{gpuNode("e8", list(nvidia, "8")), gpuNode("e1", list(nvidia, "1")), gpuNode("e4", list(nvidia, "4"))},
			want:    []string{"e1", "e4", "e8"},
		},
		"largest empty node first": {
			change:  func(c *config.Configuration) { c.Ranking.EmptyNodes = config.LargestFirst },
			objects: []any{gpuNode("e8", list(nvidia, "8")), gpuNode("e1", list(nvidia, "1")), gpuNode("e4", list(nvidia, "4")), gpuNode("used", list(nvidia, "16")), fill("used", "1")},
			want:    []string{"used", "e8", "e4", "e1"},
		},
		"devices 4,4,2: a 2-device pod goes to the 2-node": {
			objects: []any{gpuNode("a", list(nvidia, "4")), gpuNode("b", list(nvidia, "4")), gpuNode("c", list(nvidia, "2"))},
			pod:     gpuPod("p", list(nvidia, "2")),
			want:    []string{"c", "?", "?"},
		},
		"highest share, whatever is left": {
			change: func(c *config.Configuration) { c.Ranking.Strategy = config.StrategyMostAllocated },
			objects: []any{
				gpuNode("e1", list(nvidia, "1")), gpuNode("big", list(nvidia, "8")), gpuNode("small", list(nvidia, "4")),
				fill("big", "6"), fill("small", "2"),
			},
			// scores: big 100*6/8=75, small 100*2/4=50, e1 0
			want: []string{"big", "small", "e1"},
		},
		"untolerated PreferNoSchedule last": {
			objects: []any{
				gpuNode("busy", list(nvidia, "4"), tainted("x", corev1.TaintEffectPreferNoSchedule)), fill("busy", "3"),
				gpuNode("empty", list(nvidia, "4")),
			},
			want: []string{"empty", "busy"},
		},
		"tolerated PreferNoSchedule does not matter": {
			objects: []any{
				gpuNode("busy", list(nvidia, "4"), tainted("x", corev1.TaintEffectPreferNoSchedule)), fill("busy", "3"),
				gpuNode("empty", list(nvidia, "4")),
			},
			pod:  gpuPod("p", list(nvidia, "1"), tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists})),
			want: []string{"busy", "empty"},
		},
		"equal GPUs: least CPU and memory left": {
			objects: []any{
				gpuNode("a", list(nvidia, "4"), withCPU("96", "1152Gi")), gpuNode("b", list(nvidia, "4"), withCPU("48", "576Gi")),
				gpuPod("on-a", list(nvidia, "1", "cpu", "1", "memory", "1Gi"), on("a")), gpuPod("on-b", list(nvidia, "1", "cpu", "1", "memory", "1Gi"), on("b")),
			},
			want: []string{"b", "a"},
		},
		"a DaemonSet's GPU pod counts as used but does not make a node occupied": {
			objects: []any{
				gpuNode("agent", list(nvidia, "8")), gpuPod("d", list(nvidia, "7"), on("agent"), ownedByDaemonSet),
				gpuNode("busy", list(nvidia, "8")), fill("busy", "1"),
			},
			want: []string{"busy", "agent"},
		},
		"a draining node is no target": {
			objects: []any{
				gpuNode("drain", list(nvidia, "8")), gpuPod("d", list(nvidia, "7"), on("drain"), terminating),
				gpuNode("busy", list(nvidia, "8")), fill("busy", "1"),
			},
			want: []string{"busy", "drain"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := tc.pod
			if pod == nil {
				pod = gpuPod("p", list(nvidia, "1"))
			}
			c := newCluster(t, tc.change, tc.objects...)
			d := c.decide(pod)
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
func rankOf(t *testing.T, c *testCluster, pod *corev1.Pod) []string {
	t.Helper()
	demand, reason := NewDemand(pod, c.Scorer.cfg.Resources)
	if reason != ReasonNone {
		t.Fatal(reason)
	}
	c.Index.mu.Lock()
	c.Index.reservations.release(pod.UID, pod.Namespace)
	c.Index.mu.Unlock()
	v := c.viewOf(pod, &demand)
	f, _ := c.feasible(t.Context(), &v, &Query{Pod: pod, Demand: &demand}, allNodes)
	var out []string
	for _, n := range c.rank(f, &v) {
		out = append(out, n.name)
	}
	return out
}

func TestOriginScore(t *testing.T) {
	for _, tc := range []struct{ allocated, allocatable, want int64 }{
		{3, 4, 75}, {1, 4, 25}, {0, 4, 0}, {4, 4, 100}, {1, 3, 33},
		{7, 6, 100}, // more in use than allocatable
		{1, 0, 0}, {0, 0, 0}, {-1, 4, 0},
	} {
		if got := OriginScore(tc.allocated, tc.allocatable); got != tc.want {
			t.Errorf("OriginScore(%d, %d) = %d, want %d", tc.allocated, tc.allocatable, got, tc.want)
		}
	}
}

// The tie-break is the same whatever order the nodes came in, and scatters nodes
// that are neighbours by name.
func TestRankingTies(t *testing.T) {
	var forward, backward []any
	for i := range 64 {
		forward = append(forward, gpuNode(fmt.Sprintf("node-%03d", i), list(nvidia, "8")))
		backward = append(backward, gpuNode(fmt.Sprintf("node-%03d", 63-i), list(nvidia, "8")))
	}
	pod := gpuPod("p", list(nvidia, "1"))
	a, b := names(newCluster(t, nil, forward...).decide(pod)), names(newCluster(t, nil, backward...).decide(pod))
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
