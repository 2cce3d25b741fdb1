package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

// result is one line of admission.json: medians of the runs.
type result struct {
	Nodes  int    `json:"nodes"`
	Pods   int    `json:"pods"`
	Shape  string `json:"shape"`
	System string `json:"system"`
	loadResult
	Runs int `json:"runs"`
}

// summarize returns the medians of the runs. Reviews were dry runs if they were in any,
// and unpatched answers are added up.
func summarize(runs []loadResult, shape *cluster.Shape, nodes int, name string) result {
	middle := func(value func(*loadResult) float64) float64 {
		var values []float64
		for i := range runs {
			values = append(values, value(&runs[i]))
		}
		return reports.Median(values)
	}
	r := result{Nodes: nodes, Pods: shape.PodCount(nodes), Shape: shape.Name, System: name, Runs: len(runs)}
	r.P50Micros = middle(func(l *loadResult) float64 { return l.P50Micros })
	r.P99Micros = middle(func(l *loadResult) float64 { return l.P99Micros })
	r.MaxMicros = middle(func(l *loadResult) float64 { return l.MaxMicros })
	r.RequestsPerSecond = middle(func(l *loadResult) float64 { return l.RequestsPerSecond })
	r.CPUMicrosPerRequest = middle(func(l *loadResult) float64 { return l.CPUMicrosPerRequest })
	r.RatePerSecond = middle(func(l *loadResult) float64 { return l.RatePerSecond })
	for i := range runs {
		r.SaturationDryRun = r.SaturationDryRun || runs[i].SaturationDryRun
		r.PacedDryRun = r.PacedDryRun || runs[i].PacedDryRun
		r.Unpatched += runs[i].Unpatched
	}
	return r
}

// writeTable prints the results, each figure with its ratio to that of noop.
func writeTable(out io.Writer, results []result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "shape\tnodes\tpods\tsystem\tp50 µs\t/ noop\tp99 µs\t/ noop\tmax µs\tat requests/s\trequests/s\t/ noop\tCPU µs\t/ noop\tdry runs\tunpatched")
	var base result
	for _, r := range results {
		if r.System == noop { // the first of each cluster
			base = r
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%.0f\t%.2f\t%.0f\t%.2f\t%.0f\t%.0f\t%.0f\t%.2f\t%.0f\t%.2f\t%s\t%d\n",
			r.Shape, r.Nodes, r.Pods, r.System, r.P50Micros, r.P50Micros/base.P50Micros, r.P99Micros, r.P99Micros/base.P99Micros, r.MaxMicros, r.RatePerSecond,
			r.RequestsPerSecond, r.RequestsPerSecond/base.RequestsPerSecond, r.CPUMicrosPerRequest, r.CPUMicrosPerRequest/base.CPUMicrosPerRequest, dryRuns(r), r.Unpatched)
	}
	return table.Flush()
}

// writePairs prints what another build takes as parts of what ours takes, each run
// compared with the run of ours just before.
func writePairs(out io.Writer, own, other []loadResult) {
	ratios := func(what string, value func(*loadResult) float64) {
		var all []float64
		for i := range own {
			all = append(all, value(&other[i])/value(&own[i]))
		}
		fmt.Fprintf(out, "against ours, %s: median %.3f, range %.3f to %.3f\n", what, reports.Median(all), slices.Min(all), slices.Max(all))
	}
	ratios("CPU", func(l *loadResult) float64 { return l.CPUMicrosPerRequest })
	ratios("p50", func(l *loadResult) float64 { return l.P50Micros })
	ratios("p99", func(l *loadResult) float64 { return l.P99Micros })
}

// dryRuns says which reviews were dry runs.
func dryRuns(r result) string {
	switch {
	case r.SaturationDryRun && r.PacedDryRun:
		return "all"
	case r.SaturationDryRun:
		return "saturation"
	case r.PacedDryRun:
		return "latencies"
	default:
		return "none"
	}
}

func save(path string, results []result) (err error) {
	if path == "" {
		if path, err = reports.Path("admission.json"); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "saving:", path)
	return reports.Write(path, results)
}
