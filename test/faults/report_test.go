package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

// Forms of the suite.
const (
	modeShort = "short"
	modeFull  = "full"
)

// result is a row of the report; the first five keys are a contract.
type result struct {
	Fault   string `json:"fault"`
	Created int    `json:"created"`
	// Denied is how many pods were refused because of the webhook.
	Denied  int `json:"denied"`
	Steered int `json:"steered"`
	// Recovered tells whether steering resumed by itself.
	Recovered bool `json:"recovered"`

	Mode string `json:"mode"`
	// FailedOpen is how many calls of the webhook failed and were ignored.
	FailedOpen int `json:"failedOpen"`
	// Unavailable is how many tries the API server itself did not serve.
	Unavailable int `json:"unavailable"`
	// SlowestSeconds is the slowest creation, NormalSeconds the slowest of pods
	// that never come near the webhook, and LimitSeconds what is allowed.
	SlowestSeconds float64 `json:"slowestSeconds"`
	NormalSeconds  float64 `json:"normalSeconds"`
	LimitSeconds   float64 `json:"limitSeconds"`
	// ResumedSeconds is from the end of the fault to the first of the pods that
	// were steered again, one after another.
	ResumedSeconds float64 `json:"resumedSeconds"`
	// MemoryMiB is the most that a replica had resident.
	MemoryMiB      int64 `json:"memoryMiB"`
	MemoryLimitMiB int64 `json:"memoryLimitMiB"`
	// ServedByReplica is what each replica has answered since it started.
	ServedByReplica []int `json:"servedByReplica"`
	// Seconds is how long the row took.
	Seconds float64 `json:"seconds"`
	// Problems say what was not as it must be.
	Problems []string `json:"problems,omitempty"`
}

// reportFile collects the rows of a run.
type reportFile struct{ rows []result }

func (r *reportFile) add(row result) { r.rows = append(r.rows, row) }

// save prints the rows and writes them to bin/reports/faults.json. Rows of the
// other form are kept there, so that make test does not destroy what make
// test-faults took long to find.
func (r *reportFile) save(out io.Writer) error {
	if len(r.rows) == 0 {
		return nil
	}
	if err := r.print(out); err != nil {
		return err
	}
	path, err := reports.Path("faults.json")
	if err != nil {
		return err
	}
	rows, err := readRows(path)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(row result) bool { return row.Mode == r.rows[0].Mode })
	return reports.Write(path, append(rows, r.rows...))
}

// readRows reads the rows of earlier runs, if there are any.
func readRows(path string) (rows []result, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("reading the report %s: %w", path, err)
	}
	return rows, nil
}

// print writes a table.
func (r *reportFile) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nfault\tcreated\tdenied\tsteered\tfailed open\tnot served\tslowest s\tlimit s\tresumed after s\tserved by replica\tmemory MiB\trecovered")
	for _, row := range r.rows {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t%.1f\t%v\t%d of %d\t%v\n",
			row.Fault, row.Created, row.Denied, row.Steered, row.FailedOpen, row.Unavailable,
			row.SlowestSeconds, row.LimitSeconds, row.ResumedSeconds, row.ServedByReplica, row.MemoryMiB, row.MemoryLimitMiB, row.Recovered)
	}
	fmt.Fprintln(table, "\nfailed open: calls of the webhook that failed, and were ignored; not served: tries while the API server itself was down; served by replica: since its start")
	for _, row := range r.rows {
		if len(row.Problems) > 0 {
			fmt.Fprintf(table, "PROBLEM in %s: %s\n", row.Fault, strings.Join(row.Problems, "; "))
		}
	}
	return table.Flush()
}
