package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

// result is one element of e2e.json: medians of the runs.
type result struct {
	System             string  `json:"system"`
	Nodes              int     `json:"nodes"`
	Pods               int     `json:"pods"`
	Runs               int     `json:"runs"`
	PodsPerSecond      float64 `json:"podsPerSecond"`
	ScheduledPerSecond float64 `json:"scheduledPerSecond"`
}

func summarize(o options, measured map[string][]figures) []result {
	var results []result
	for _, system := range systems {
		var created, scheduled []float64
		for _, f := range measured[system] {
			created, scheduled = append(created, f.created), append(scheduled, f.scheduled)
		}
		results = append(results, result{
			System: system, Nodes: o.nodes, Pods: o.pods, Runs: len(created),
			PodsPerSecond: reports.Median(created), ScheduledPerSecond: reports.Median(scheduled),
		})
	}
	return results
}

// writeTable prints the results, each with its ratio to that without a webhook.
func writeTable(out io.Writer, results []result) error {
	fmt.Fprintf(out, "%d nodes, %d pods, medians of %d runs\n", results[0].Nodes, results[0].Pods, results[0].Runs)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "system\tpods created/s\t/ none\tpods bound/s\t/ none")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%.0f\t%.2f\t%.0f\t%.2f\n", r.System, r.PodsPerSecond, r.PodsPerSecond/results[0].PodsPerSecond,
			r.ScheduledPerSecond, r.ScheduledPerSecond/results[0].ScheduledPerSecond)
	}
	return table.Flush()
}

func save(path string, results []result) (err error) {
	if path == "" {
		if path, err = reports.Path("e2e.json"); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "saving:", path)
	return reports.Write(path, results)
}
