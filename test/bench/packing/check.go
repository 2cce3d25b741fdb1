package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/report"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/system"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

const (
	// leastServed is the share of requests that each replica must have answered
	// over all runs: else the runs with two replicas show nothing.
	leastServed = 0.3
	// leastSpread is the share of nodes that the default scheduler must use where
	// pods wait for nodes, and in bursts: else there was nothing to pack.
	leastSpread = 0.6
	// quickSlack is how much more than ideal two replicas may take in a burst of
	// quick mode, which runs on any machine: on a slow one a replica sees the other's
	// decisions only after all pods of the burst are admitted. Without steering the
	// same bursts take twice the ideal. Full mode has no slack.
	quickSlack = 1.1
)

// check returns an error for everything that is not as it must be. It looks at
// the order of the systems, not at time.
func check(results []report.Result) error {
	// byRun: workload and seed -> system -> result.
	byRun := map[string]map[string]*report.Result{}
	var order []string
	for i := range results {
		r := &results[i]
		run := fmt.Sprintf("%s/seed%d", r.Case(), r.Seed)
		if byRun[run] == nil {
			byRun[run] = map[string]*report.Result{}
			order = append(order, run)
		}
		byRun[run][r.SystemName()] = r
	}
	var problems []error
	for _, run := range order {
		for _, problem := range checkRun(byRun[run]) {
			problems = append(problems, fmt.Errorf("%s: %w", run, problem))
		}
	}
	return errors.Join(append(problems, checkServed(results)...)...)
}

// checkRun checks one workload.
func checkRun(systems map[string]*report.Result) []error {
	var problems []error
	without := systems[system.Default]
	for _, name := range []string{"ours-1", "ours-2"} {
		with := systems[name]
		if with == nil {
			continue
		}
		if with.Denied > 0 {
			problems = append(problems, fmt.Errorf("%s: %d pods were denied because of the webhook", name, with.Denied))
		}
		if limit, ok := mostNodes(with); ok && with.OccupiedNodes > limit {
			problems = append(problems, fmt.Errorf("%s: %g nodes, more than %g (ideal %d)", name, with.OccupiedNodes, limit, with.IdealNodes))
		}
		if without == nil {
			continue
		}
		if with.GPUsOnOccupiedNodes > without.GPUsOnOccupiedNodes {
			problems = append(problems, fmt.Errorf("%s: %.0f GPUs on occupied nodes, %.0f without it",
				name, with.GPUsOnOccupiedNodes, without.GPUsOnOccupiedNodes))
		}
		if with.Unplaced8GPU > without.Unplaced8GPU {
			problems = append(problems, fmt.Errorf("%s: %d 8-GPU pods unplaced, %d without it", name, with.Unplaced8GPU, without.Unplaced8GPU))
		}
		if with.Bound < without.Bound && with.Workload != workload.Churn {
			problems = append(problems, fmt.Errorf("%s: %d pods bound, %d without it", name, with.Bound, without.Bound))
		}
	}
	if without != nil && without.Arrival == string(workload.Burst) && without.Load >= 0.5 && without.OccupiedNodes < leastSpread*float64(without.Nodes) {
		problems = append(problems, fmt.Errorf("the default scheduler used only %g of %d nodes: there was nothing to pack",
			without.OccupiedNodes, without.Nodes))
	}
	return problems
}

// mostNodes is how many nodes a workload on equal nodes may take. A pod whose call
// of the webhook timed out may open a node of its own: that is no matter of
// packing.
func mostNodes(r *report.Result) (float64, bool) {
	ideal, unsteered := float64(r.IdealNodes), float64(r.FailedOpen)
	switch {
	case r.Workload != workload.Uniform && r.Workload != workload.Waiting:
		return 0, false
	case r.Mode == quick && r.Replicas > 1 && r.Arrival == string(workload.Burst):
		return math.Floor(quickSlack*ideal) + unsteered, true
	case r.Nodes <= 60:
		return ideal + unsteered, true
	case r.Nodes <= 200:
		return ideal + 2 + unsteered, true
	case r.Nodes <= 1000:
		return 1.03*ideal + unsteered, true
	default:
		return 0, false // an honest figure, without a limit
	}
}

// checkServed checks that with two replicas each did its part.
func checkServed(results []report.Result) []error {
	var served [2]int
	for i := range results {
		if len(results[i].ServedByReplica) != len(served) {
			continue
		}
		for n, count := range results[i].ServedByReplica {
			served[n] += count
		}
	}
	sum := served[0] + served[1]
	if sum > 0 && float64(min(served[0], served[1])) < leastServed*float64(sum) {
		return []error{fmt.Errorf("the replicas answered %v requests: each should have at least %.0f%%", served, 100*leastServed)}
	}
	return nil
}
