package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

// result is scale.json.
type result struct {
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	// NodeObjectBytes and PodObjectBytes are the mean sizes of the objects as the API
	// server sends them.
	NodeObjectBytes float64 `json:"nodeObjectBytes"`
	PodObjectBytes  float64 `json:"podObjectBytes"`
	// EmptyRSSMiB is in a cluster with no nodes, RSSMiB in the full one when all has
	// settled, BusyRSSMiB after the changes; PeakRSSMiB is the most at any time.
	EmptyRSSMiB  float64 `json:"emptyRssMiB"`
	RSSMiB       float64 `json:"rssMiB"`
	BusyRSSMiB   float64 `json:"busyRssMiB"`
	PeakRSSMiB   float64 `json:"peakRssMiB"`
	BytesPerPod  float64 `json:"bytesPerPod"`
	BytesPerNode float64 `json:"bytesPerNode"`
	// ReadySeconds and BareListSeconds count from the start of the process.
	ReadySeconds     float64 `json:"readySeconds"`
	BareListSeconds  float64 `json:"bareListSeconds"`
	IdleCPUPercent   float64 `json:"idleCpuPercent"`
	StressCPUPercent float64 `json:"stressCpuPercent"`
	// BareIdleCPUPercent and BareStressCPUPercent are of informers that do nothing, at
	// the same time.
	BareIdleCPUPercent   float64 `json:"bareIdleCpuPercent"`
	BareStressCPUPercent float64 `json:"bareStressCpuPercent"`

	// nodesRSS is with all nodes and no pods, in bytes.
	nodesRSS int64
}

// writeTable prints the result next to what it must show.
func writeTable(out io.Writer, r result) error {
	fmt.Fprintf(out, "%d nodes of %.1f kB, %d pods of %.1f kB\n", r.Nodes, r.NodeObjectBytes/1000, r.Pods, r.PodObjectBytes/1000)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "memory, settled\t%.0f MiB\tat most 300 MiB at 5,000 nodes\n", r.RSSMiB)
	fmt.Fprintf(table, "memory after changes, at most\t%.0f MiB, %.0f MiB\t\n", r.BusyRSSMiB, r.PeakRSSMiB)
	fmt.Fprintf(table, "memory with no nodes\t%.0f MiB\t\n", r.EmptyRSSMiB)
	fmt.Fprintf(table, "memory per pod, per node\t%.0f bytes, %.0f bytes\t\n", r.BytesPerPod, r.BytesPerNode)
	fmt.Fprintf(table, "time to ready\t%.2f s\t\n", r.ReadySeconds)
	fmt.Fprintf(table, "bare list and decode\t%.2f s\t\n", r.BareListSeconds)
	fmt.Fprintf(table, "ratio\t%.2f\tat most 1.5\n", r.ReadySeconds/r.BareListSeconds)
	fmt.Fprintf(table, "CPU, statuses every %s\t%.1f %% of a core\tat most 5 %%\n", usualInterval, r.IdleCPUPercent)
	fmt.Fprintf(table, "bare informers, at the same time\t%.1f %%\t\n", r.BareIdleCPUPercent)
	fmt.Fprintf(table, "CPU, statuses every %s\t%.1f %% of a core\t\n", stressInterval, r.StressCPUPercent)
	fmt.Fprintf(table, "bare informers, at the same time\t%.1f %%\t\n", r.BareStressCPUPercent)
	return table.Flush()
}

func save(path string, r result) (err error) {
	if path == "" {
		if path, err = reports.Path("scale.json"); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "saving:", path)
	return reports.Write(path, r)
}
