package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

func TestProblems(t *testing.T) {
	tests := map[string]struct {
		change func(*Result)
		want   []string // a part of each problem
	}{
		"none":                {func(*Result) {}, nil},
		"nothing was run":     {func(r *Result) { *r = Result{} }, nil},
		"a failed test":       {func(r *Result) { r.EndToEnd.Failed = []string{"TestA", "TestB"} }, []string{"TestA, TestB"}},
		"one by one":          {func(r *Result) { r.Packing[0].OccupiedNodes = 9 }, []string{"64 pods on 16 nodes (sequential, 1 replicas): 9"}},
		"burst":               {func(r *Result) { r.Packing[2].OccupiedNodes = 9 }, []string{"64 pods on 16 nodes (burst, 1 replicas): 9"}},
		"burst, two replicas": {func(r *Result) { r.Packing[3].OccupiedNodes = 9 }, nil},
		"two of them": {func(r *Result) {
			r.Packing[3].OccupiedNodes = 9
			r.Packing = append(r.Packing, r.Packing[3])
		}, []string{"(burst, 2 replicas): 9"}},
		"more than one more":   {func(r *Result) { r.Packing[3].OccupiedNodes = 10 }, []string{"(burst, 2 replicas): 10"}},
		"60 nodes":             {func(r *Result) { r.Packing[7].OccupiedNodes = 31 }, []string{"240 pods on 60 nodes (burst, 2 replicas): 31"}},
		"fewer since unbound":  {func(r *Result) { r.Packing[0].OccupiedNodes, r.Packing[0].Bound = 7, 56 }, []string{"56 bound"}},
		"denied":               {func(r *Result) { r.Packing[3].OccupiedNodes, r.Packing[3].Denied = 9, 1 }, []string{"1 denied"}},
		"timed out":            {func(r *Result) { r.Packing[0].OccupiedNodes, r.Packing[0].FailedOpen = 16, 5 }, []string{"5 calls of the webhook timed out"}},
		"a different score":    {func(r *Result) { r.Scores.Equal-- }, []string{"1199 of 1200"}},
		"nothing was compared": {func(r *Result) { r.Scores = &Scores{} }, []string{"0 of 0"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			result := measured("1.34.4")
			result.EndToEnd.Failed, result.Scores.Equal = nil, 1200
			tc.change(&result)
			got := result.problems()
			if len(got) != len(tc.want) {
				t.Fatalf("problems %q, want %q", got, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("problem %q, want %q", got[i], want)
				}
			}
		})
	}
}

// What save writes comes back, one entry for each version and list of suites.
func TestResultsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports", reportName)
	old := measured("1.37.2")
	old.Suites, old.Problems = fullSuites, []string{"old"}
	narrow := Result{Version: "1.34.4", Suites: []string{scenarios}, EndToEnd: &Tests{Passed: 8}}
	again := measured("1.37.2")
	again.Suites = fullSuites
	for _, result := range []Result{old, narrow, again} {
		results, err := readResults(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := reports.Write(path, merge(results, result)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readResults(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Result{narrow, again}, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestReadResultsNamesADamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), reportName)
	if err := os.WriteFile(path, []byte("[{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readResults(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v does not name %s", err, path)
	}
}
