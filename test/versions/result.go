package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

// Result is how one Kubernetes version did: an entry of versions.json. The keys are
// a contract; more may be added.
type Result struct {
	// Version is without v: 1.34.4.
	Version string `json:"version"`
	// Suites that were run; the report keeps one entry for each list of them.
	Suites []string `json:"suites"`
	// EndToEnd is absent when the suite did not run.
	EndToEnd *Tests `json:"endToEnd,omitempty"`
	// Packing has a row for each workload and number of replicas.
	Packing []Packing `json:"packing,omitempty"`
	// Scores is absent when they were not compared.
	Scores *Scores `json:"scores,omitempty"`
	// Problems say what is not as it must be, one sentence each.
	Problems []string `json:"problems"`
	// Seconds is how long it took, the build included.
	Seconds float64 `json:"seconds"`
}

// Tests counts the tests of a package; those within tests are not counted.
type Tests struct {
	Passed int `json:"passed"`
	// Failed and Skipped are names.
	Failed  []string `json:"failed"`
	Skipped []string `json:"skipped,omitempty"`
}

// Packing is a workload of equal nodes of which the pods need half, and how many
// nodes they took.
type Packing struct {
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	// Arrival is sequential or burst, Replicas how many of the webhook ran.
	Arrival  string `json:"arrival"`
	Replicas int    `json:"replicas"`
	// OccupiedNodes hold a pod; IdealNodes are the fewest that can hold all.
	OccupiedNodes int `json:"occupiedNodes"`
	IdealNodes    int `json:"idealNodes"`
	// Bound pods found a node, Denied ones were refused because of the webhook.
	Bound  int `json:"bound"`
	Denied int `json:"denied"`
	// FailedOpen pods were created unsteered, since a call of the webhook timed out:
	// a matter of the machine, not of the version.
	FailedOpen int `json:"failedOpen"`
}

// Scores counts the scores of the scheduler binary that were compared with our
// model's, and those that were equal.
type Scores struct {
	Compared int `json:"compared"`
	Equal    int `json:"equal"`
}

// mostTolerated is how many rows may be tolerated in one version: on a slow machine
// the second replica sees the first one's decisions only after a burst.
const mostTolerated = 1

// problems says what in the measurements is not as it must be.
func (r *Result) problems() []string {
	var problems []string
	if t := r.EndToEnd; t != nil && len(t.Failed) > 0 {
		problems = append(problems, "end-to-end tests failed: "+strings.Join(t.Failed, ", "))
	}
	tolerated := 0
	for _, row := range r.Packing {
		if row.tolerated() {
			tolerated++
		}
		if row.ideal() || row.tolerated() && tolerated <= mostTolerated {
			continue
		}
		problems = append(problems, fmt.Sprintf("%d pods on %d nodes (%s, %d replicas): %d nodes used, ideal %d; %d bound, %d denied, %d calls of the webhook timed out",
			row.Pods, row.Nodes, row.Arrival, row.Replicas, row.OccupiedNodes, row.IdealNodes, row.Bound, row.Denied, row.FailedOpen))
	}
	if s := r.Scores; s != nil && (s.Equal != s.Compared || s.Compared == 0) {
		problems = append(problems, fmt.Sprintf("%d of %d compared scores are equal", s.Equal, s.Compared))
	}
	return problems
}

// complete tells whether every pod found a node and none was refused.
func (p Packing) complete() bool { return p.Bound == p.Pods && p.Denied == 0 }

func (p Packing) ideal() bool { return p.complete() && p.OccupiedNodes == p.IdealNodes }

// tolerated is a burst on 16 nodes with two replicas that took one node more.
func (p Packing) tolerated() bool {
	return p.complete() && p.Nodes == 16 && p.Replicas == 2 && p.Arrival == string(workload.Burst) &&
		p.OccupiedNodes == p.IdealNodes+1
}

// readResults reads a report; one that does not exist has no entries.
func readResults(path string) ([]Result, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading earlier results: %w", err)
	}
	var results []Result
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, fmt.Errorf("reading earlier results: %s: %w; delete it to begin anew", path, err)
	}
	return results, nil
}

// merge puts a result in the place of the one of its version and suites, and sorts.
func merge(results []Result, result Result) []Result {
	merged := slices.DeleteFunc(slices.Clone(results), func(r Result) bool {
		return r.Version == result.Version && slices.Equal(r.Suites, result.Suites)
	})
	merged = append(merged, result)
	slices.SortStableFunc(merged, func(a, b Result) int { return semver.Compare("v"+a.Version, "v"+b.Version) })
	return merged
}
