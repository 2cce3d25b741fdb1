package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/report"
)

// A test that is renamed must not disappear from the scenarios.
func TestScenarioTestsExist(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "e2e", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	for _, name := range scenarioTests {
		if !strings.Contains(source.String(), "\nfunc "+name+"(") {
			t.Errorf("test/e2e has no %s", name)
		}
	}
}

func TestCheckSuites(t *testing.T) {
	for _, suites := range [][]string{fullSuites, {scenarios}} {
		if err := checkSuites(suites); err != nil {
			t.Error(err)
		}
	}
	for _, suites := range [][]string{nil, {"e2e", "all"}} {
		if err := checkSuites(suites); err == nil || !strings.Contains(err.Error(), "-suites") {
			t.Errorf("%q: error %v", suites, err)
		}
	}
}

func TestSelectVersions(t *testing.T) {
	got, err := selectVersions(t.Context(), []string{"v1.34.4", "1.36.3"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1.34.4", "1.36.3"}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if _, err := selectVersions(t.Context(), []string{"1.34"}); err == nil || !strings.Contains(err.Error(), "-versions") {
		t.Errorf("error %v does not name the flag", err)
	}
}

func TestReadPacking(t *testing.T) {
	dir := t.TempDir()
	file, err := report.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	add := func(r report.Result) {
		t.Helper()
		if err := file.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	row := report.Result{Workload: "uniform", Owner: "replicaset", Load: 0.5, Seed: 1, Mode: "full", FailedOpen: 3}
	var want []Packing
	for _, row.Nodes = range []int{16, 60} {
		for _, row.Arrival = range []string{"sequential", "burst"} {
			row.System, row.Replicas = "bound", 0
			add(row)
			row.System = "ours"
			for _, row.Replicas = range []int{1, 2} {
				row.Pods, row.Bound, row.IdealNodes, row.OccupiedNodes = 4*row.Nodes, 4*row.Nodes-1, row.Nodes/2, float64(row.Nodes)
				add(row)
				want = append(want, Packing{
					Nodes: row.Nodes, Pods: 4 * row.Nodes, Arrival: row.Arrival, Replicas: row.Replicas,
					OccupiedNodes: row.Nodes, IdealNodes: row.Nodes / 2, Bound: 4*row.Nodes - 1, FailedOpen: 3,
				})
			}
		}
	}
	got, err := readPacking(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if _, err := readPacking(t.TempDir()); err == nil || !strings.Contains(err.Error(), "0 rows") {
		t.Errorf("without results: error %v", err)
	}
}

func TestReadScores(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scores-v1.34.4.json")
	const text = `{"version":"v1.34.4","plugins":{"A":{"compared":100,"differing":1},"B":{"compared":50,"differing":0},"total":{"compared":100,"differing":1}}}`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := readScores(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Scores{Compared: 150, Equal: 149}, got); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
	if _, err := readScores(path + ".missing"); err == nil {
		t.Error("a report that is missing gives scores")
	}
}
