package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/simulate"
)

// maxSquares is how many squares a node is drawn with at most; one with more GPUs
// is drawn to scale.
const maxSquares = 16

// nodeGroup is nodes of one kind, drawn together.
type nodeGroup struct {
	Title string
	// Label is the text alternative of the drawing.
	Label string
	Cells []cell
	nodes int
	// occupied nodes have a GPU pod.
	occupied int
}

// cell is the drawing of the GPUs of one resource on a node: used squares of all.
type cell struct {
	Class       string
	Used, Total int64
	Title       string
}

// groups returns the nodes by what they offer, most GPUs first; in each group the
// fullest first, then the empty ones that cannot be removed, then the others.
func (s *Scenario) groups() []nodeGroup {
	shown := slices.Clone(s.Nodes)
	slices.SortStableFunc(shown, func(a, b simulate.Node) int {
		return cmp.Or(compareOffers(&a, &b), cmp.Compare(b.GPUs[0].Allocated, a.GPUs[0].Allocated),
			boolsFirst(a.Occupied(), b.Occupied()), boolsFirst(!a.Removable(), !b.Removable()), cmp.Compare(a.Name, b.Name))
	})
	var groups []nodeGroup
	for i := range shown {
		if i == 0 || compareOffers(&shown[i-1], &shown[i]) != 0 {
			groups = append(groups, nodeGroup{Title: offer(&shown[i])})
		}
		g := &groups[len(groups)-1]
		g.Cells = append(g.Cells, cells(&shown[i])...)
		g.nodes++
		if shown[i].Occupied() {
			g.occupied++
		}
	}
	for i := range groups {
		g := &groups[i]
		g.Title = plural(g.nodes, "node") + " with " + g.Title
		g.Label = "Drawing of " + g.Title + ", " + whole(g.occupied) + " occupied; the table of all nodes has the same content"
	}
	return groups
}

// compareOffers orders nodes by what they offer.
func compareOffers(a, b *simulate.Node) int {
	return slices.CompareFunc(a.GPUs, b.GPUs, func(x, y simulate.GPUs) int {
		return cmp.Or(cmp.Compare(x.Resource, y.Resource), cmp.Compare(y.Allocatable, x.Allocatable))
	})
}

func boolsFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func offer(n *simulate.Node) string {
	parts := make([]string, len(n.GPUs))
	for i, g := range n.GPUs {
		parts[i] = fmt.Sprintf("%d %s", g.Allocatable, g.Resource)
	}
	return strings.Join(parts, ", ")
}

// cells returns the drawing of a node, one cell for each GPU resource.
func cells(n *simulate.Node) []cell {
	list := make([]cell, len(n.GPUs))
	for i, g := range n.GPUs {
		c := cell{Class: class(n), Used: min(g.Allocated, g.Allocatable), Total: g.Allocatable}
		c.Title = fmt.Sprintf("%s: %d of %d used%s", n.Name, g.Allocated, g.Allocatable, suffix(n))
		if len(n.GPUs) > 1 {
			c.Title = g.Resource + " on " + c.Title
		}
		if c.Total > maxSquares {
			// Rounded up, so that what is used is seen, but full only when it is.
			c.Used, c.Total = min((c.Used*maxSquares+c.Total-1)/c.Total, maxSquares-one(c.Used < c.Total)), maxSquares
		}
		list[i] = c
	}
	return list
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// class is the style of a node; a removable one can be out as well.
func class(n *simulate.Node) string {
	out := n.Out != nodes.Feasible
	switch {
	case out && n.Removable():
		return "gone out"
	case out:
		return "out"
	case n.Removable():
		return "gone"
	}
	return "in"
}

func suffix(n *simulate.Node) string {
	var parts []string
	if n.OtherPods > 0 {
		parts = append(parts, plural(n.OtherPods, "other pod"))
	}
	if n.Removable() {
		parts = append(parts, "removable")
	}
	if n.Out != nodes.Feasible {
		parts = append(parts, string(n.Out))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", " + strings.Join(parts, ", ")
}
