package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/simulate"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// figureTable is a table whose first column says what the others are.
type figureTable struct {
	Title   string
	Columns []string
	Rows    []figureRow
}

// figureRow is one figure in each scenario.
type figureRow struct {
	Label  string
	Values []string
}

// tables returns the figures of the report: those of all nodes, those of each
// resource, and those of the replay.
func (r *Report) tables() []figureTable {
	columns := make([]string, len(r.Scenarios))
	for i := range r.Scenarios {
		columns[i] = r.Scenarios[i].Short
	}
	all := figureTable{Title: "Nodes with GPUs", Columns: columns}
	all.add("nodes", r.each(func(s *Scenario) string { return whole(s.Figures.Nodes) }))
	all.add("occupied by GPU pods", r.each(func(s *Scenario) string { return whole(s.Figures.Occupied) }))
	all.add("empty: no GPU pods", r.each(func(s *Scenario) string { return whole(s.Figures.Empty) }))
	all.add("removable: only DaemonSet pods", r.each(func(s *Scenario) string { return whole(s.Figures.Removable) }))
	if r.Prices != nil {
		all.add("money per month, empty nodes", r.each(func(s *Scenario) string { return money(s.Money.Empty) }))
		all.add("money per month, removable", r.each(func(s *Scenario) string { return money(s.Money.Removable) }))
	}
	if r.Pods != nil {
		if r.Pods.Pending > 0 {
			all.add(fmt.Sprintf("of %d waiting pods find room", r.Pods.Pending), r.each(func(s *Scenario) string { return whole(s.PendingFit) }))
		}
		all.add("GPU pods on another node than now", r.each(func(s *Scenario) string { return whole(s.Moved) }))
	}
	tables := []figureTable{all}
	for i := range r.Scenarios[0].Figures.Resources {
		tables = append(tables, r.resourceTable(i, columns))
	}
	if t := r.replayTable(); len(t.Rows) > 0 {
		tables = append(tables, t)
	}
	return tables
}

func (t *figureTable) add(label string, values []string) {
	t.Rows = append(t.Rows, figureRow{Label: label, Values: values})
}

func (r *Report) each(value func(*Scenario) string) []string {
	values := make([]string, len(r.Scenarios))
	for i := range r.Scenarios {
		values[i] = value(&r.Scenarios[i])
	}
	return values
}

// resourceTable is that of the i-th resource, which is the same in all scenarios.
func (r *Report) resourceTable(i int, columns []string) figureTable {
	first := &r.Scenarios[0].Figures.Resources[i]
	t := figureTable{Title: first.Resource + ", on " + plural(first.Nodes, "node"), Columns: columns}
	of := func(value func(*simulate.ResourceFigures) int64) []string {
		return r.each(func(s *Scenario) string { return whole(value(&s.Figures.Resources[i])) })
	}
	t.add("occupied nodes", of(func(f *simulate.ResourceFigures) int64 { return int64(f.Occupied) }))
	t.add("GPUs allocatable", of(func(f *simulate.ResourceFigures) int64 { return f.Allocatable }))
	t.add("GPUs allocated", of(func(f *simulate.ResourceFigures) int64 { return f.Allocated }))
	t.add("GPUs stranded on occupied nodes", of(func(f *simulate.ResourceFigures) int64 { return f.Stranded }))
	t.add("largest pod that fits, in GPUs", of(func(f *simulate.ResourceFigures) int64 { return f.LargestPod }))
	for j := range first.Fits {
		t.add(fmt.Sprintf("pods of %s that fit", plural(int(first.Fits[j].GPUs), "GPU")), of(func(f *simulate.ResourceFigures) int64 { return f.Fits[j].Pods }))
	}
	return t
}

// replayTable is empty when there is no replay.
func (r *Report) replayTable() figureTable {
	t := figureTable{Title: "Pods as they come and go"}
	if len(r.Replay) == 0 {
		return t
	}
	if !r.timed {
		t.Title = "Pods in the order of the file"
	}
	of := func(label string, value func(*simulate.Replay) string) {
		values := make([]string, len(r.Replay))
		for i := range r.Replay {
			values[i] = value(&r.Replay[i])
		}
		t.add(label, values)
	}
	for i := range r.Replay {
		t.Columns = append(t.Columns, strings.ToLower(string(r.Replay[i].Rule)))
	}
	if r.Replay[0].To > r.Replay[0].From {
		of("occupied nodes, average over time", func(p *simulate.Replay) string { return strconv.FormatFloat(p.AverageOccupied, 'f', 1, 64) })
	}
	of("occupied nodes, most at once", func(p *simulate.Replay) string { return whole(p.MostOccupied) })
	of("GPU pods", func(p *simulate.Replay) string { return whole(p.GPUPods) })
	of("of these, had to wait", func(p *simulate.Replay) string { return whole(p.Waited) })
	of("average wait of those, seconds", func(p *simulate.Replay) string { return whole(int64(p.AverageWait + 0.5)) })
	of("never found room", func(p *simulate.Replay) string { return whole(p.NeverPlaced) })
	return t
}

// Summary is the report in a sentence.
func (r *Report) Summary() string {
	first, other := &r.Scenarios[0], &r.Scenarios[1]
	was, would := first.Figures.Occupied, other.Figures.Occupied
	if r.busiest() {
		return fmt.Sprintf("Simulation, %s: GPU pods on %s of %s when spread, on %s when packed.",
			r.moment(), whole(was), plural(first.Figures.Nodes, "node"), whole(would))
	}
	text := fmt.Sprintf("GPU pods are on %s of %s. In the simulation, packed in order of creation, they are on %s; placed all anew, largest first, on %s.",
		whole(was), plural(first.Figures.Nodes, "node"), whole(would), whole(r.Scenarios[2].Figures.Occupied))
	if would > was {
		text += " So they are packed better now than by this rule."
	}
	return text + fmt.Sprintf(" An autoscaler could remove %s now, and %s when packed in order of creation%s.",
		plural(first.Figures.Removable, "node"), whole(other.Figures.Removable), worth(first.Money, other.Money))
}

// worth is what can be removed more or less, in money; "" without prices.
func worth(now, then *Money) string {
	switch {
	case now == nil || now.Removable == then.Removable:
		return ""
	case then.Removable > now.Removable:
		return ", worth " + money(then.Removable-now.Removable) + " more per month"
	}
	return ", worth " + money(now.Removable-then.Removable) + " less per month"
}

// moment is what the scenarios of a replay show.
func (r *Report) moment() string {
	if r.timed {
		return "when the most GPUs are asked for"
	}
	return "with all pods placed in the order of the file"
}

// keptTexts are the reasons that need more words than their name has.
var keptTexts = map[steering.Reason]string{
	simulate.ReasonDaemonSet:           "of a DaemonSet or static",
	simulate.ReasonEnding:              "being deleted",
	simulate.ReasonNodeGone:            "their node is gone",
	steering.ReasonPinned:              "only one node can take them",
	steering.ReasonNothingFits:         "no other place was found",
	steering.ReasonUserPreference:      "own preferences leave no weight",
	steering.ReasonSpread:              "ask to be spread",
	steering.ReasonOtherScheduler:      "placed by another scheduler",
	steering.ReasonOptedOut:            "opted out",
	steering.ReasonPodGroup:            "of a Kueue pod group",
	steering.ReasonGated:               "gated",
	steering.ReasonUnknownResource:     "ask for a resource that no node offers",
	steering.ReasonInvalidAffinity:     "required affinity does not parse",
	steering.ReasonTooLarge:            "too large to decide about",
	steering.ReasonConstraintsTooLarge: "node constraints too large to compare",
}

// keptLines say which pods stay where they are, in one scenario.
func (s *Scenario) keptLines() []string {
	var lines []string
	if s.GaveUp {
		lines = append(lines, "No packing was found that keeps every pod on a node; all stay where they are.")
	}
	for _, k := range keptByReason(s.Kept) {
		text := keptTexts[k.Reason]
		if text == "" {
			text = string(k.Reason)
		}
		names := strings.Join(k.Examples, ", ")
		if k.Count > len(k.Examples) {
			names += ", ..."
		}
		lines = append(lines, fmt.Sprintf("%s: %s (%s)", plural(k.Count, "pod"), text, names))
	}
	return lines
}

// unpricedText names the nodes without a price; "" when there are none.
func (p *PriceSummary) unpricedText() string {
	if p == nil || len(p.Unpriced) == 0 {
		return ""
	}
	const named = 5
	names := strings.Join(p.Unpriced[:min(named, len(p.Unpriced))], ", ")
	if len(p.Unpriced) > named {
		names += ", ..."
	}
	return fmt.Sprintf("%s without a price, counted as 0: %s", plural(len(p.Unpriced), "node"), names)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return whole(n) + " " + what + "s"
}

// whole writes a number with commas between thousands.
func whole[T int | int64](n T) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// money writes an amount of at least 0 with two digits after the point.
func money(amount float64) string {
	units, cents, _ := strings.Cut(strconv.FormatFloat(amount, 'f', 2, 64), ".")
	n, err := strconv.ParseInt(units, 10, 64)
	if err != nil {
		return units + "." + cents // beyond an int64
	}
	return whole(n) + "." + cents
}
