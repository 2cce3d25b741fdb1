package main

import (
	"strings"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/report"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

// result is a burst of 64 pods on 16 nodes.
func result(systemName string, replicas int, nodes float64) report.Result {
	return report.Result{
		Workload: "uniform", Owner: "replicaset", Arrival: "burst", Nodes: 16, Load: 0.5, Seed: 1, Mode: quick,
		System: systemName, Replicas: replicas, OccupiedNodes: nodes, GPUsOnOccupiedNodes: 8 * nodes,
		IdealNodes: 8, Pods: 64, Bound: 64,
	}
}

func change(r report.Result, by func(*report.Result)) report.Result {
	by(&r)
	return r
}

func sixty(r *report.Result) { r.Nodes, r.IdealNodes, r.Pods, r.Bound = 60, 30, 240, 240 }

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		results []report.Result
		want    string
	}{
		"good":           {[]report.Result{result("default", 0, 16), result("ours", 1, 8)}, ""},
		"not ideal":      {[]report.Result{result("default", 0, 16), result("ours", 1, 9)}, "9 nodes, more than 8"},
		"default packed": {[]report.Result{result("default", 0, 8), result("ours", 1, 8)}, "nothing to pack"},
		"worse than default": {
			[]report.Result{result("default", 0, 12), result("ours", 2, 13)}, "104 GPUs on occupied nodes, 96 without it",
		},
		"denied": {
			[]report.Result{change(result("ours", 1, 8), func(r *report.Result) { r.Denied = 1 })}, "1 pods were denied",
		},
		"fewer bound": {
			[]report.Result{result("default", 0, 16), change(result("ours", 1, 8), func(r *report.Result) { r.Bound = 63 })},
			"63 pods bound, 64 without it",
		},
		"large clusters may miss by two": {
			[]report.Result{change(result("ours", 1, 10), func(r *report.Result) { r.Nodes = 200 })}, "",
		},
		"a call timed out": {
			[]report.Result{change(result("ours", 1, 9), func(r *report.Result) { r.FailedOpen = 1 })}, "",
		},
		// 60 nodes, 30 of them ideal: 33 are at most 1.1 times that
		"two replicas that see each other late": {
			[]report.Result{change(result("ours", 2, 33), sixty)}, "",
		},
		"two replicas spread": {
			[]report.Result{change(result("ours", 2, 34), sixty)}, "34 nodes, more than 33",
		},
		"no slack in full mode": {
			[]report.Result{change(change(result("ours", 2, 31), sixty), func(r *report.Result) { r.Mode = full })},
			"31 nodes, more than 30",
		},
		"one replica idle": {
			[]report.Result{change(result("ours", 2, 8), func(r *report.Result) { r.ServedByReplica = []int{60, 4} })},
			"at least 30%",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := check(tc.results)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("unexpected: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want something with %q", err, tc.want)
			}
		})
	}
}

// TestPlan checks that no two workloads of a mode have the same key.
func TestPlan(t *testing.T) {
	for _, mode := range []string{quick, full} {
		workloads, err := plan(mode, "", workload.DefaultList, 2)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, w := range workloads {
			name := caseName(w, mode)
			if seen[name] {
				t.Errorf("%s: %s is there twice", mode, name)
			}
			seen[name] = true
		}
	}
	if _, err := plan("other", "", workload.DefaultList, 1); err == nil {
		t.Error("an unknown mode is accepted")
	}
}
