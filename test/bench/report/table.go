package report

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable prints results side by side.
func WriteTable(out io.Writer, results []Result) error {
	for _, g := range Groups(results) {
		fmt.Fprintf(out, "\n%s (%s)\n", g.Case, g.Mode)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  system\tseeds\tnodes\tideal\tGPUs on them\trequested\tfree on empty\t8-GPU unplaced\tbound\ttarget/listed/other\tseconds\twaiting s: median, p99; 8 GPUs: mean, most\tserved")
		for _, r := range g.Rows {
			fmt.Fprintf(w, "  %s\t%d\t%.4g\t%.4g\t%.0f\t%.0f\t%.0f%%\t%g\t%d/%d\t%s\t%s\t%s\t%s\n",
				r.System, r.Seeds, r.Occupied, r.Ideal, r.GPUs, r.Requested, 100*r.FreeOnEmptyNodes, r.Unplaced8,
				r.Bound, r.Pods, r.landed(), r.seconds(), r.waits(), r.served())
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// landed is empty for systems without rankings.
func (r *Row) landed() string {
	text := ""
	if r.Landed != (Landed{}) {
		text = fmt.Sprintf("%d/%d/%d", r.Landed.Target, r.Landed.Listed, r.Landed.Other)
	}
	if r.Late > 0 {
		text += fmt.Sprintf(" late %d", r.Late)
	}
	return text
}

func (r *Row) seconds() string {
	if r.Seconds == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", r.Seconds)
}

func (r *Row) waits() string {
	if r.Waits == nil {
		return ""
	}
	return fmt.Sprintf("%.2f, %.2f; %.2f, %.2f", r.Waits.Median, r.Waits.P99, r.Waits.Mean8GPU, r.Waits.Max8GPU)
}

func (r *Row) served() string {
	if len(r.Served) == 0 {
		return ""
	}
	return fmt.Sprint(r.Served)
}
