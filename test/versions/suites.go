package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/report"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/system"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// Names of the suites.
const (
	endToEnd  = "e2e"
	packing   = "packing"
	scores    = "scores"
	scenarios = "scenarios"
)

// fullSuites are the suites whose results the table shows.
var fullSuites = []string{endToEnd, packing, scores}

// scenarioTests are the end-to-end tests of the suite scenarios.
var scenarioTests = []string{
	"TestPacking", "TestSmallestNodeThatFits", "TestLargeNodeStaysFree", "TestReplicasStayTogether",
	"TestHeterogeneousNames", "TestWaitingPodsPack", "TestEarlierListedNodesFillFirst", "TestUserPreferenceIsNeverReversed",
	"TestVersionIsFound",
}

const (
	// packingRuns chooses the rows of the packing benchmark's full mode.
	packingRuns = "^uniform/(16|60)/replicaset/"
	// packingRows is how many these are: two sizes, two arrivals, one and two
	// replicas.
	packingRows = 8
	// suiteTimeout limits a test binary. The end-to-end tests take 6 minutes on two
	// cores.
	suiteTimeout = "40m"
)

// checkSuites returns an error for a suite that does not exist.
func checkSuites(suites []string) error {
	known := append(slices.Clone(fullSuites), scenarios)
	for _, suite := range suites {
		if !slices.Contains(known, suite) {
			return fmt.Errorf("-suites: no suite %q, only %s", suite, strings.Join(known, ", "))
		}
	}
	if len(suites) == 0 {
		return fmt.Errorf("-suites: name at least one of %s", strings.Join(known, ", "))
	}
	return nil
}

// runner tests one Kubernetes version.
type runner struct {
	// version is without v, name how progress lines begin.
	version, name string
	root          string
	out           io.Writer
}

// run builds the version and runs the suites on it. What fails is in the result.
func (r *runner) run(ctx context.Context, suites []string) Result {
	start := time.Now()
	result := Result{Version: r.version, Suites: suites}
	fail := func(suite string, err error) {
		if err != nil {
			result.Problems = append(result.Problems, fmt.Sprintf("%s: %v", suite, err))
		}
	}
	fmt.Fprintf(r.out, "%s: building\n", r.name)
	if _, err := programs.BuildKubernetes(ctx, r.out, r.version); err != nil {
		fail("build", err)
		return result
	}
	for _, suite := range suites {
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintf(r.out, "%s: %s\n", r.name, suite)
		var err error
		switch suite {
		case endToEnd:
			result.EndToEnd, err = r.test(ctx, suite, "./e2e")
		case scenarios:
			result.EndToEnd, err = r.test(ctx, suite, "./e2e", "-run", "^("+strings.Join(scenarioTests, "|")+")$")
		case packing:
			result.Packing, err = r.packing(ctx)
		case scores:
			result.Scores, err = r.scores(ctx)
		}
		fail(suite, err)
	}
	result.Problems = append(result.Problems, result.problems()...)
	result.Seconds = time.Since(start).Seconds()
	return result
}

// test runs the tests of a package and counts them.
func (r *runner) test(ctx context.Context, suite, pkg string, flags ...string) (*Tests, error) {
	tests := &Tests{}
	args := append([]string{"test", "-count=1", "-json", "-timeout", suiteTimeout, pkg}, flags...)
	counter := newCounter(tests, r.out)
	log, err := r.command(ctx, suite, counter, args...)
	if countErr := counter.Close(); countErr != nil {
		return tests, errors.Join(err, countErr)
	}
	if err != nil && len(tests.Failed) == 0 {
		// Not a test but what is around the tests: it did not build or start.
		return tests, fmt.Errorf("%w; see %s", err, log)
	}
	return tests, nil
}

// packing runs the rows of the packing benchmark.
func (r *runner) packing(ctx context.Context) ([]Packing, error) {
	dir := filepath.Join(r.reports(), packing)
	// Results of an earlier invocation are not this one's.
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	log, err := r.command(ctx, packing, r.out,
		"run", "./bench/packing", "-mode", "full", "-systems", system.Ours, "-run", packingRuns, "-reports", dir)
	if err != nil {
		err = fmt.Errorf("%w; see %s", err, log)
	}
	rows, readErr := readPacking(dir)
	return rows, errors.Join(err, readErr)
}

// readPacking returns our system's rows of a packing.json.
func readPacking(dir string) ([]Packing, error) {
	file, err := report.Open(dir)
	if err != nil {
		return nil, err
	}
	var rows []Packing
	for i := range file.Results {
		row := &file.Results[i]
		if row.System != system.Ours || row.Workload != workload.Uniform {
			continue
		}
		rows = append(rows, Packing{
			Nodes: row.Nodes, Pods: row.Pods, Arrival: row.Arrival, Replicas: row.Replicas,
			OccupiedNodes: int(row.OccupiedNodes), IdealNodes: row.IdealNodes, Bound: row.Bound, Denied: row.Denied, FailedOpen: row.FailedOpen,
		})
	}
	if len(rows) != packingRows {
		return rows, fmt.Errorf("%d rows were measured, want %d", len(rows), packingRows)
	}
	return rows, nil
}

// scores runs the comparison of scores, if the repository has it, and reads its
// report.
func (r *runner) scores(ctx context.Context) (*Scores, error) {
	const pkg = "agreement/binary"
	if _, err := os.Stat(filepath.Join(r.root, "test", pkg)); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(r.out, "%s: no test/%s here: scores are not compared\n", r.name, pkg)
		return nil, nil
	}
	// The report's name has the release without what follows it, as in -beta.0.
	release, _, _ := strings.Cut(r.version, "-")
	path := filepath.Join(r.root, "bin", "reports", "scores-v"+release+".json")
	// A report of an earlier invocation is not this one's.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	tests, err := r.test(ctx, scores, "./"+pkg)
	if err == nil && len(tests.Failed) > 0 {
		err = fmt.Errorf("failed: %s", strings.Join(tests.Failed, ", "))
	}
	counted, readErr := readScores(path)
	return counted, errors.Join(err, readErr)
}

// readScores adds up what a report of test/agreement/binary says of each plugin. The
// entry "total" is the sum of a node's plugins, which is no score of its own.
func readScores(path string) (*Scores, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the compared scores: %w", err)
	}
	var scored struct {
		Plugins map[string]struct{ Compared, Differing int }
	}
	if err := json.Unmarshal(text, &scored); err != nil {
		return nil, fmt.Errorf("reading the compared scores: %s: %w", path, err)
	}
	counted := &Scores{}
	for name, plugin := range scored.Plugins {
		if name == "total" {
			continue
		}
		counted.Compared += plugin.Compared
		counted.Equal += plugin.Compared - plugin.Differing
	}
	return counted, nil
}
