package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadCSV(t *testing.T) {
	in := csvInput(t, "pods.csv")
	type line struct {
		GPUs         int64
		At, Duration int64
		Models       bool
	}
	got := map[string]line{}
	for _, a := range in.Arrivals {
		gpus := a.Pod.Spec.Containers[0].Resources.Requests[nvidia]
		got[a.Pod.Name] = line{gpus.Value(), a.At, a.Duration, a.Pod.Spec.Affinity != nil}
	}
	// The duration is from scheduled_time, else from creation_time, to deletion_time.
	want := map[string]line{
		"a": {1, 0, 400, false}, "b": {1, 10, 380, false}, "c": {2, 20, 380, true}, "d": {1, 30, 370, false},
		"web": {0, 30, 370, false}, "e": {8, 100, 100, false}, "f": {1, 200, 100, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !in.Timed || len(in.State.Nodes) != 4 || len(in.State.Pods) != 0 {
		t.Errorf("timed %v, %d nodes, %d pods", in.Timed, len(in.State.Nodes), len(in.State.Pods))
	}
	if cpu := in.State.Nodes[3].Status.Allocatable.Cpu().MilliValue(); cpu != 48000 {
		t.Errorf("n4 has %d millicores", cpu)
	}
}

// Pods with nodes are a cluster, in which those without one wait.
func TestLoadCSVWithNodes(t *testing.T) {
	in := csvInput(t, "bound.csv")
	on := map[string]string{}
	for i := range in.State.Pods {
		on[in.State.Pods[i].Name] = in.State.Pods[i].Spec.NodeName
	}
	want := map[string]string{"a": "n1", "b": "n2", "c": "n3", "d": "n4", "exporter": "n1", "web": "n2", "waits": ""}
	if diff := cmp.Diff(want, on); diff != "" {
		t.Error(diff)
	}
	if len(in.Arrivals) != 0 || in.Timed {
		t.Errorf("%d arrivals", len(in.Arrivals))
	}
	r := newReport(t, in, nil)
	if r.Pods.Running != 4 || r.Pods.Pending != 1 || r.Pods.Others != 2 {
		t.Errorf("pods %+v", r.Pods)
	}
}

// The files of the openb trace are read as they are.
func TestOpenbColumns(t *testing.T) {
	nodes := write(t, "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0000,64000,262144,2,P100\n")
	pods := write(t, "pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"+
		"openb-pod-0001,6000,12288,1,460,P100|T4,LS,Running,427061,12902960,427061.0\n")
	in, err := LoadCSV(nodes, pods, config.Default().Resources, taken)
	if err != nil {
		t.Fatal(err)
	}
	if got := in.State.Nodes[0].Labels[corev1.LabelInstanceTypeStable]; got != "P100" {
		t.Errorf("instance type %q", got)
	}
	terms := in.Arrivals[0].Pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if diff := cmp.Diff([]string{"P100", "T4"}, terms[0].MatchExpressions[0].Values); diff != "" {
		t.Error(diff)
	}
	if in.Arrivals[0].Duration != 12902960-427061 {
		t.Errorf("duration %d", in.Arrivals[0].Duration)
	}
	if got := newReport(t, in, nil).Scenarios[1].Figures.Occupied; got != 1 {
		t.Errorf("the pod is on %d nodes", got)
	}
}

// Errors name the file, the line, the column and what to write instead.
func TestCSVErrors(t *testing.T) {
	const nodesHead, podsHead = "name,cpu_milli,memory_mib,gpu\n", "name,cpu_milli,memory_mib,num_gpu,node,creation_time,deletion_time\n"
	const goodNodes, goodPods = nodesHead + "n1,1000,1024,8\n", podsHead + "p1,1,1,1,n1,,\n"
	for name, tc := range map[string]struct {
		nodes, pods string
		want        []string
	}{
		"empty file":     {"", goodPods, []string{"nodes.csv", "is empty", "name the columns"}},
		"no nodes":       {nodesHead, goodPods, []string{"nodes.csv", "no nodes"}},
		"missing column": {"name,gpu\n", goodPods, []string{"nodes.csv, line 1", "no column cpu_milli", "no column memory_mib"}},
		"no name":        {"cpu_milli,memory_mib,gpu\n", goodPods, []string{"no column name or sn"}},
		"column twice":   {"name,gpu,gpu\n", goodPods, []string{"line 1", `"gpu" is there twice`}},
		"short line":     {nodesHead + "n1,1000\n", goodPods, []string{"line 2", "wrong number of fields", "as many values"}},
		"open quote":     {nodesHead + "\"n1,1000,1,1\n", goodPods, []string{"nodes.csv", "quotes must be closed"}},
		"no number":      {nodesHead + "n1,many,1024,8\n", goodPods, []string{"nodes.csv, line 2, column cpu_milli", `"many"`, "whole number"}},
		"negative":       {nodesHead + "n1,1000,1024,-1\n", goodPods, []string{"line 2, column gpu", `"-1"`, "from 0 to"}},
		"half a GPU":     {goodNodes, podsHead + "p1,1,1,0.5,n1,,\n", []string{"pods.csv, line 2, column num_gpu", `"0.5"`}},
		"node twice":     {goodNodes + "n1,1000,1024,8\n", goodPods, []string{"line 3, column name", "there twice"}},
		"bad name":       {nodesHead + "Node_1,1000,1024,8\n", goodPods, []string{"line 2, column name", "lower-case"}},
		"empty name":     {goodNodes, podsHead + ",1,1,1,n1,,\n", []string{"pods.csv, line 2, column name", "must not be empty"}},
		"unknown node":   {goodNodes, podsHead + "p1,1,1,1,n2,,\n", []string{"pods.csv, line 2, column node", `"n2"`, "leave this empty"}},
		"ends too early": {goodNodes, podsHead + "p1,1,1,1,,20,10\n", []string{"line 2, column deletion_time", "before the pod began"}},
		"no time":        {goodNodes, podsHead + "p1,1,1,1,,today,\n", []string{"line 2, column creation_time", "number of seconds"}},
		"two errors":     {nodesHead + "n1,x,1024,8\nn2,1,y,8\n", goodPods, []string{"line 2, column cpu_milli", "line 3, column memory_mib"}},
		"no GPU": {
			"name,cpu_milli,memory_mib,gpu,gpu_resource\nn1,1,1,1,example.com/gpu\n", goodPods,
			[]string{"line 2, column gpu_resource", "resources.names"},
		},
		"DaemonSet without node": {
			goodNodes, "name,cpu_milli,memory_mib,num_gpu,owner_kind\nd,1,1,1,DaemonSet\n", []string{"column owner_kind", "needs a node"},
		},
		"too many": {nodesHead + strings.Repeat("n1,x,1024,8\n", 50), goodPods, []string{"line 2, column cpu_milli", "too many errors"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadCSV(write(t, "nodes.csv", tc.nodes), write(t, "pods.csv", tc.pods), config.Default().Resources, time.Now())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if lines := strings.Count(err.Error(), "\n"); lines > maxErrors {
				t.Errorf("%d lines of errors", lines)
			}
		})
	}
}

func TestPrices(t *testing.T) {
	n := node("n", of(nvidia, "8"), map[string]string{corev1.LabelInstanceTypeStable: "p5", "price": "1.25", "bad": "much"})
	for name, tc := range map[string]struct {
		prices Prices
		want   float64
		wantOK bool
	}{
		"all":          {Prices{All: 3}, 3, true},
		"label":        {Prices{Label: "price"}, 1.25, true},
		"no label":     {Prices{Label: "none"}, 0, false},
		"bad label":    {Prices{Label: "bad"}, 0, false},
		"type":         {Prices{ByType: map[string]float64{"p5": 98}}, 98, true},
		"unknown type": {Prices{ByType: map[string]float64{"p4": 32}}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := tc.prices.of(&n); got != tc.want || ok != tc.wantOK {
				t.Errorf("%v, %v", got, ok)
			}
		})
	}
	for name, tc := range map[string]struct{ content, want string }{
		"no column": {"type,price\n", "no column instance_type"},
		"no price":  {"instance_type,price_per_hour\np5,much\n", "line 2, column price_per_hour"},
		"negative":  {"instance_type,price_per_hour\np5,-1\n", "line 2, column price_per_hour"},
		"twice":     {"instance_type,price_per_hour\np5,1\np5,2\n", "line 3, column instance_type"},
		"no type":   {"instance_type,price_per_hour\n,2\n", "must not be empty"},
		"no lines":  {"instance_type,price_per_hour\n", "has no prices"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := LoadPrices(write(t, "prices.csv", tc.content)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v does not say %q", err, tc.want)
			}
		})
	}
}
