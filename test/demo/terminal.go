package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// terminal draws nodes as rows of GPUs: plain text when the output is no terminal
// or NO_COLOR is set.
type terminal struct {
	out   io.Writer
	color bool
}

func newTerminal(out *os.File) *terminal {
	return &terminal{out: out, color: term.IsTerminal(int(out.Fd())) && os.Getenv("NO_COLOR") == ""}
}

// Colours of the terminal's own palette.
const (
	bold  = "1"
	green = "32"
	red   = "31"
	cyan  = "36"
	faint = "2"
)

func (t *terminal) paint(code, text string) string {
	if !t.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (t *terminal) title(text string) {
	fmt.Fprintf(t.out, "\n%s\n", t.paint(bold, text))
}

func (t *terminal) progress(text string) {
	fmt.Fprintf(t.out, "  %s\n", t.paint(faint, text))
}

// Marks of a GPU in use and of a free one.
const (
	usedMark, freeMark           = "■", "□"
	plainUsedMark, plainFreeMark = "#", "."
)

// bar draws the GPUs of a node.
func (t *terminal) bar(n scenario.NodeUse) string {
	used, free := min(n.Used(), n.GPUs), max(n.GPUs-n.Used(), 0)
	if !t.color {
		return strings.Repeat(plainUsedMark, used) + strings.Repeat(plainFreeMark, free)
	}
	return t.paint(cyan, strings.Repeat(usedMark, used)) + t.paint(faint, strings.Repeat(freeMark, free))
}

// sideBySide draws the same nodes without and with the webhook.
func (t *terminal) sideBySide(without, with scenario.Placement) {
	nameWidth, barWidth := widths(with)
	left, right := "without", "with gpu-binpacker"
	fmt.Fprintf(t.out, "  %-*s  %-*s  %s\n", nameWidth, "", max(barWidth, len(left)), left, right)
	pad := strings.Repeat(" ", max(len(left)-barWidth, 0))
	for i, node := range with.Nodes {
		fmt.Fprintf(t.out, "  %-*s  %s%s  %s\n", nameWidth, node.Name, t.bar(without.Nodes[i]), pad, t.bar(node))
	}
	if without.Pending+with.Pending > 0 {
		fmt.Fprintf(t.out, "  %-*s  %-*d  %d\n", nameWidth, "pending", max(barWidth, len(left)), without.Pending, with.Pending)
	}
}

// one draws nodes.
func (t *terminal) one(p scenario.Placement) {
	nameWidth, _ := widths(p)
	for _, node := range p.Nodes {
		fmt.Fprintf(t.out, "  %-*s  %s\n", nameWidth, node.Name, t.bar(node))
	}
}

func widths(p scenario.Placement) (name, bar int) {
	name = len("pending")
	for _, node := range p.Nodes {
		name, bar = max(name, len(node.Name)), max(bar, node.GPUs)
	}
	return name, bar
}

// verdict says in one line what the scenario came to.
func (t *terminal) verdict(e entry) {
	fmt.Fprintf(t.out, "  nodes used: %d without, %d with, ideal %d", e.Without.NodesUsed, e.With.NodesUsed, e.Ideal)
	if e.Problem != "" {
		fmt.Fprintf(t.out, "  %s\n", t.paint(red, "NOT PACKED: "+e.Problem))
		return
	}
	fmt.Fprintf(t.out, "  %s\n", t.paint(green, "packed"))
}
