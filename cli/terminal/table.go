package terminal

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table is laid out in columns as wide as their widest cell.
type Table struct {
	rows [][]string
	// dim are the rows that matter less.
	dim map[int]bool
}

// Add adds a row; the first one is the heading.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// DimLast makes the last row one that matters less.
func (t *Table) DimLast() {
	if t.dim == nil {
		t.dim = map[int]bool{}
	}
	t.dim[len(t.rows)-1] = true
}

// lines returns one line per row, without trailing blanks.
func (t *Table) lines() []string {
	var laid bytes.Buffer
	w := tabwriter.NewWriter(&laid, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return nil // a buffer takes everything
	}
	lines := strings.Split(strings.TrimSuffix(laid.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// Print writes the table.
func (t *Table) Print(out io.Writer, s Screen) {
	for i, line := range t.lines() {
		switch {
		case i == 0:
			line = s.Bold(line)
		case t.dim[i]:
			line = s.style(codeDim, line)
		}
		fmt.Fprintln(out, line)
	}
}
