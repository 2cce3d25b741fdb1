package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// nodesView prints reports of nodes.
type nodesView struct {
	screen terminal.Screen
	output output
	order  order
	// lines prints each report for machines on one line: in a watch.
	lines bool
}

// render returns what is printed.
func (v *nodesView) render(r *NodesReport) ([]byte, error) {
	var out bytes.Buffer
	switch {
	case v.output == outputJSON && v.lines:
		if err := json.NewEncoder(&out).Encode(r); err != nil {
			return nil, fmt.Errorf("encoding the output: %w", err)
		}
	case v.output != outputTable:
		if v.output == outputYAML && v.lines {
			fmt.Fprintln(&out, "---")
		}
		if err := writeObject(&out, v.output, r); err != nil {
			return nil, err
		}
	case len(r.Nodes) == 0:
		fmt.Fprintln(&out, "no node offers a configured GPU resource; a device plugin announces them, and resources in the configuration names them")
	default:
		v.printTable(&out, r)
	}
	return out.Bytes(), nil
}

// nodeRow is one resource of one node.
type nodeRow struct {
	node *ReportedNode
	// use holds the resource.
	use []ReportedUse
}

// rows are sorted by resource, then as the flag says.
func (v *nodesView) rows(r *NodesReport) []nodeRow {
	var rows []nodeRow
	for i := range r.Nodes {
		n := &r.Nodes[i]
		for j := range n.GPUs {
			rows = append(rows, nodeRow{n, n.GPUs[j : j+1]})
		}
	}
	slices.SortStableFunc(rows, func(a, b nodeRow) int {
		return cmp.Or(cmp.Compare(a.use[0].Name, b.use[0].Name), compareUses(v.order, a.use, b.use), cmp.Compare(a.node.Name, b.node.Name))
	})
	return rows
}

func (v *nodesView) printTable(out *bytes.Buffer, r *NodesReport) {
	several := len(r.Resources) > 1
	cells := func(resource string, others ...string) []string {
		if several {
			return slices.Insert(others, 1, resource)
		}
		return others
	}
	var t terminal.Table
	t.Add(cells("RESOURCE", "NODE", "USED", "FREE", "PACKED", "PODS", "IN FLIGHT", "STATE")...)
	for _, row := range v.rows(r) {
		n, g := row.node, row.use[0].ResourceUse
		t.Add(cells(string(g.Name), n.Name, terminal.Decimal(g.Allocated), terminal.Decimal(g.Free()), v.bar(g),
			terminal.Decimal(n.Pods), terminal.Decimal(n.InFlight), stateWords[n.Out])...)
		if n.Out != nodes.Feasible {
			t.DimLast()
		}
	}
	t.Print(out, v.screen)
	fmt.Fprintln(out)
	for _, s := range r.Resources {
		for i, line := range terminal.Wrap(s.text(), terminal.Columns-2) {
			if i > 0 {
				line = "  " + line
			}
			fmt.Fprintln(out, line)
		}
	}
}

// stateWords are the reasons why nothing is packed onto a node, short enough for a
// column.
var stateWords = map[nodes.Reason]string{
	nodes.Feasible: "",
	nodes.Excluded: "excluded",
	nodes.NotReady: "not ready",
	nodes.Cordoned: "cordoned",
	nodes.Leaving:  "leaving",
	nodes.Backoff:  "back-off",
}

// barWidth is the length of a full bar.
const barWidth = 8

// bar draws how full a node is, with the percentage: full only when it is, and
// empty only when nothing is used.
func (v *nodesView) bar(g nodes.ResourceUse) string {
	full, empty := "█", "░"
	if !v.screen.Unicode {
		full, empty = "#", "."
	}
	percent := percentage(g.Allocated, g.Allocatable)
	length := min(int(percent*barWidth/100), barWidth)
	if length == 0 && g.Allocated > 0 {
		length = 1
	}
	return fmt.Sprintf("%s%s %3d%%", strings.Repeat(full, length), strings.Repeat(empty, barWidth-length), percent)
}

// percentage is rounded down, and 0 of nothing.
func percentage(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return 100 * part / whole
}

// text sums up a resource.
func (s *NodesOfResource) text() string {
	packed := "nothing is used"
	if s.OccupiedNodes > 0 {
		packed = fmt.Sprintf("%d of %d GPUs on occupied ones used (%d%%)",
			s.UsedOnOccupied, s.AllocatableOnOccupied, percentage(s.UsedOnOccupied, s.AllocatableOnOccupied))
	}
	largest := fmt.Sprintf("the largest pod that fits on one node has %d", s.LargestFitting)
	if s.LargestFitting == 0 {
		largest = "no node that takes pods has any free"
	}
	return fmt.Sprintf("%s: %s occupied, %d empty; %s; %s",
		s.Resource, terminal.Count(s.OccupiedNodes, "node"), s.EmptyNodes, packed, largest)
}
