package main

import (
	"bytes"
	"fmt"
	"html"

	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// Sizes of the picture, in pixels.
const (
	cell, gap   = 14, 3
	rowHeight   = cell + 4
	margin      = 20
	headHeight  = 74
	labelWidth  = 90
	columnGap   = 70
	legendSpace = 30
	fontFamily  = "system-ui, sans-serif"
	usedColor   = "#2f6fde"
	freeColor   = "#d9dee7"
	edgeColor   = "#7b8698" // around free GPUs, which are hardly seen on white
	textColor   = "#1d2430"
	mutedColor  = "#667085"
	canvasColor = "#ffffff"
)

// picture draws one scenario without and with the webhook as an SVG, for the
// README: a row per node, a square per GPU, filled when in use.
func (e entry) picture() []byte {
	columns := []struct {
		title string
		result
	}{{"without", e.Without}, {"with gpu-binpacker", e.With}}
	columnWidth := labelWidth + e.With.Nodes[0].GPUs*(cell+gap)
	width := 2*margin + 2*columnWidth + columnGap
	height := headHeight + len(e.With.Nodes)*rowHeight + legendSpace + margin
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="%s" role="img" aria-labelledby="title">`+"\n",
		width, height, width, height, fontFamily)
	fmt.Fprintf(&out, `<title id="title">%s: %d nodes used without, %d with gpu-binpacker</title>`+"\n", html.EscapeString(e.Title), e.Without.NodesUsed, e.With.NodesUsed)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="%s"/>`+"\n", width, height, canvasColor)
	text(&out, margin, 26, 14, textColor, e.Title)
	for i, c := range columns {
		x := margin + i*(columnWidth+columnGap)
		text(&out, x, headHeight-14, 13, textColor, fmt.Sprintf("%s: %d nodes used", c.title, c.NodesUsed))
		for row, node := range c.Nodes {
			drawNode(&out, x, headHeight+row*rowHeight, node)
		}
	}
	legend(&out, height-margin-cell)
	fmt.Fprintln(&out, "</svg>")
	return out.Bytes()
}

func drawNode(out *bytes.Buffer, x, y int, node scenario.NodeUse) {
	text(out, x, y+cell-3, 11, mutedColor, node.Name)
	for i := range node.GPUs {
		square(out, x+labelWidth+i*(cell+gap), y, i < node.Used())
	}
}

// square draws a GPU; the edge of a free one lies within its place.
func square(out *bytes.Buffer, x, y int, used bool) {
	if used {
		fmt.Fprintf(out, `<rect x="%d" y="%d" width="%d" height="%d" rx="2" fill="%s"/>`+"\n", x, y, cell, cell, usedColor)
		return
	}
	fmt.Fprintf(out, `<rect x="%d.5" y="%d.5" width="%d" height="%d" rx="2" fill="%s" stroke="%s"/>`+"\n",
		x, y, cell-1, cell-1, freeColor, edgeColor)
}

func legend(out *bytes.Buffer, y int) {
	square(out, margin, y, true)
	text(out, margin+cell+6, y+cell-3, 11, textColor, "GPU in use")
	square(out, margin+labelWidth, y, false)
	text(out, margin+labelWidth+cell+6, y+cell-3, 11, textColor, "free GPU; a row is a node")
}

func text(out *bytes.Buffer, x, y, size int, color, content string) {
	fmt.Fprintf(out, `<text x="%d" y="%d" font-size="%d" fill="%s">%s</text>`+"\n", x, y, size, color, html.EscapeString(content))
}
