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
	Owner              string  `json:"owner"`
	PodsPerSecond      float64 `json:"podsPerSecond"`
	ScheduledPerSecond float64 `json:"scheduledPerSecond"`
	// CPU time per pod while they are bound, in microseconds.
	SchedulerMicrosPerPod float64 `json:"schedulerMicrosPerPod"`
	APIServerMicrosPerPod float64 `json:"apiServerMicrosPerPod"`
	WebhookMicrosPerPod   float64 `json:"webhookMicrosPerPod"`
}

func summarize(o options, measured map[string][]figures) []result {
	var results []result
	for _, system := range systems {
		var created, scheduled []float64
		var cpu [3][]float64
		for _, f := range measured[system] {
			created, scheduled = append(created, f.created), append(scheduled, f.scheduled)
			for i := range cpu {
				cpu[i] = append(cpu[i], f.cpu[i])
			}
		}
		results = append(results, result{
			System: system, Nodes: o.nodes, Pods: o.pods, Runs: len(created), Owner: o.owner,
			PodsPerSecond: reports.Median(created), ScheduledPerSecond: reports.Median(scheduled),
			SchedulerMicrosPerPod: reports.Median(cpu[0]), APIServerMicrosPerPod: reports.Median(cpu[1]), WebhookMicrosPerPod: reports.Median(cpu[2]),
		})
	}
	return results
}

// writeTable prints the results, each with its ratio to that without a webhook.
func writeTable(out io.Writer, results []result) error {
	fmt.Fprintf(out, "%d nodes, %d pods (%s), medians of %d runs\n", results[0].Nodes, results[0].Pods, results[0].Owner, results[0].Runs)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "system\tpods created/s\t/ none\tpods bound/s\t/ none\tCPU µs per pod bound: scheduler\tAPI server\twebhook")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%.0f\t%.2f\t%.0f\t%.2f\t%.0f\t%.0f\t%.0f\n", r.System, r.PodsPerSecond, r.PodsPerSecond/results[0].PodsPerSecond,
			r.ScheduledPerSecond, r.ScheduledPerSecond/results[0].ScheduledPerSecond,
			r.SchedulerMicrosPerPod, r.APIServerMicrosPerPod, r.WebhookMicrosPerPod)
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
