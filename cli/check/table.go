package check

import (
	"fmt"
	"io"
	"strings"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
)

// symbols are a level's sign, as a word and in UTF-8, and its ANSI colour.
var symbols = map[Level]struct{ word, sign, colour string }{
	OK:      {"ok  ", "✓", "\x1b[32m"},
	Warning: {"warn", "!", "\x1b[33m"},
	Failure: {"FAIL", "✗", "\x1b[31m"},
	Skipped: {"skip", "-", "\x1b[2m"},
}

// Table writes the results by group, those that are not OK with what to do. Commands are
// never broken.
func (r Report) Table(w io.Writer, screen terminal.Screen) error {
	var out strings.Builder
	group := ""
	for i := range r.Results {
		result := &r.Results[i]
		if result.Group != group {
			if group != "" {
				out.WriteString("\n")
			}
			group = result.Group
			out.WriteString(group + "\n")
		}
		result.write(&out, screen)
	}
	fmt.Fprintf(&out, "\n%d ok, %s, %s, %d skipped\n", r.Count(OK),
		terminal.Count(r.Count(Warning), "warning"), terminal.Count(r.Count(Failure), "failure"), r.Count(Skipped))
	_, err := io.WriteString(w, out.String())
	return err
}

// write writes one result.
func (r *Result) write(out *strings.Builder, screen terminal.Screen) {
	sign := symbols[r.Level].word
	if screen.Unicode {
		sign = symbols[r.Level].sign
	}
	// Columns, not bytes: the signs are one column wide.
	indent := strings.Repeat(" ", len([]rune(sign))+len(" GB101 "))
	if screen.Colour {
		sign = symbols[r.Level].colour + sign + "\x1b[0m"
	}
	before := sign + " " + r.Code + " "
	for _, text := range append([]string{r.Title + ": " + r.Message}, r.Details...) {
		for _, line := range terminal.Wrap(text, terminal.Columns-len(indent)) {
			out.WriteString(before + line + "\n")
			before = indent
		}
	}
	if r.Level == OK {
		return
	}
	switch {
	case len(r.Fix) > 0:
		out.WriteString(indent + "fix, see " + r.Docs + ":\n")
	case r.Level != Skipped:
		out.WriteString(indent + "see " + r.Docs + "\n")
	}
	// Further to the left, so that commands stay on one line.
	for _, line := range r.Fix {
		out.WriteString("    " + line + "\n")
	}
}
