package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

func example(system string, replicas int, gpus float64) Result {
	w := workload.NewUniform(16, 0.5, workload.ReplicaSet, workload.Burst, 1)
	r := New(w, "quick", system, replicas)
	r.OccupiedNodes, r.GPUsOnOccupiedNodes, r.Bound = gpus/8, gpus, 64
	return r
}

// TestKeys guards the contract of packing.json.
func TestKeys(t *testing.T) {
	r := example("ours", 2, 64)
	r.ServedByReplica = []int{30, 34}
	text, err := encode([]Result{r})
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"workload": "uniform", "owner": "replicaset", "arrival": "burst", "ratePerSecond": 0.0, "nodes": 16.0,
		"load": 0.5, "seed": 1.0, "mode": "quick", "system": "ours", "replicas": 2.0,
		"servedByReplica": []any{30.0, 34.0},
		"occupiedNodes":   8.0, "gpusOnOccupiedNodes": 64.0, "gpusRequested": 64.0, "idealNodes": 8.0,
		"unplaced8Gpu": 0.0, "pods": 64.0, "bound": 64.0,
		"landed":         map[string]any{"target": 0.0, "listed": 0.0, "other": 0.0},
		"bindAllSeconds": 0.0,
	}
	for key, value := range want {
		if diff := cmp.Diff(value, got[0][key]); diff != "" {
			t.Errorf("key %q: %s", key, diff)
		}
	}
}

// TestFileMerges adds results in two invocations: same keys replace.
func TestFileMerges(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Result{example("default", 0, 128), example("ours", 1, 72)} {
		if err := first.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	second, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	better, other := example("ours", 1, 64), example("ours", 2, 64)
	if !second.Has(better.Key()) || second.Has(other.Key()) {
		t.Error("the second invocation does not know what the first one has done")
	}
	for _, r := range []Result{better, other} {
		if err := second.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	third, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Result{example("default", 0, 128), better, other}
	if diff := cmp.Diff(want, third.Results); diff != "" {
		t.Error(diff)
	}
}

func TestGroups(t *testing.T) {
	results := []Result{example("ours", 1, 64), example("default", 0, 128)}
	for i, gpus := range []float64{80, 72} {
		r := example("ours", 1, gpus)
		r.Seed = uint64(i + 2)
		results = append(results, r)
	}
	groups := Groups(results)
	if len(groups) != 1 || groups[0].WorstGPUs != 128 {
		t.Fatalf("got %+v, want one group", groups)
	}
	rows := groups[0].Rows
	// The median of 64, 80 and 72 is 72.
	if len(rows) != 2 || rows[0].System != "default" || rows[1].System != "ours-1" || rows[1].GPUs != 72 || rows[1].Seeds != 3 {
		t.Errorf("got %+v", rows)
	}
}

func TestPictureAndTable(t *testing.T) {
	r := example("ours", 1, 64)
	r.NodeUse = [][2]int64{{8, 8}, {8, 0}}
	page, err := picture([]Result{r})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(page), `class="used"`); got != 8 {
		t.Errorf("%d GPUs are drawn as used, want 8", got)
	}
	if strings.Contains(string(page), "http") {
		t.Error("the page reaches outside")
	}
	var table strings.Builder
	if err := WriteTable(&table, []Result{r}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "ours-1") {
		t.Errorf("the table lacks the system: %s", table.String())
	}
}
