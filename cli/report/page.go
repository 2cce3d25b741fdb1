package report

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/simulate"
)

//go:embed page.html
var pageText string

// pageTemplate needs nothing from outside: style and drawing are in the page.
var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template is filled with.
type page struct {
	*Report
	Summary string
	Tables  []figureTable
	Maps    []pageMap
	Remarks []string
	Origin  string
	Rows    []pageRow
}

// pageMap is the drawing of one scenario.
type pageMap struct {
	Title, Caption string
	Groups         []nodeGroup
	Kept           []string
}

// pageRow is a node in the table of all nodes.
type pageRow struct {
	Name, Type, Offer string
	Used              []string
	Other             string
}

// WriteHTML writes the report as a page that needs no other file.
func (r *Report) WriteHTML(out io.Writer) error {
	p := page{Report: r, Summary: r.Summary(), Tables: r.tables(), Remarks: r.remarks(), Origin: r.origin()}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		f := &s.Figures
		p.Maps = append(p.Maps, pageMap{
			Title: s.Title,
			Caption: plural(f.Occupied, "node") + " occupied, " + whole(f.Empty) + " empty, " +
				whole(f.Removable) + " of them removable.",
			Groups: s.groups(), Kept: s.keptLines(),
		})
	}
	for i := range r.Scenarios[0].Nodes {
		p.Rows = append(p.Rows, r.pageRow(i))
	}
	return pageTemplate.Execute(out, &p)
}

// pageRow is the i-th node, which is the same one in all scenarios.
func (r *Report) pageRow(i int) pageRow {
	n := &r.Scenarios[0].Nodes[i]
	row := pageRow{Name: n.Name, Type: n.InstanceType, Offer: offer(n), Other: string(n.Out)}
	for j := range r.Scenarios {
		row.Used = append(row.Used, used(&r.Scenarios[j].Nodes[i]))
	}
	if n.OtherPods > 0 && row.Other == "" {
		row.Other = plural(n.OtherPods, "other pod")
	}
	return row
}

func used(n *simulate.Node) string {
	parts := make([]string, len(n.GPUs))
	for i, g := range n.GPUs {
		parts[i] = whole(g.Allocated)
	}
	return strings.Join(parts, ", ")
}
