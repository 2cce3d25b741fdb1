package check

import (
	"fmt"
	"io"
	"strings"
)

// Style says how results are written for people.
type Style struct {
	// UTF8 writes ticks and crosses, else words.
	UTF8 bool
	// Color writes ANSI colours.
	Color bool
}

// width of the text; commands are never broken.
const width = 80

// symbols are a level's sign, as a word and in UTF-8, and its ANSI colour.
var symbols = map[Level]struct{ word, sign, color string }{
	OK:      {"ok  ", "✓", "\x1b[32m"},
	Warning: {"warn", "!", "\x1b[33m"},
	Failure: {"FAIL", "✗", "\x1b[31m"},
	Skipped: {"skip", "-", "\x1b[2m"},
}

// Table writes the results by group, those that are not OK with what to do.
func (r Report) Table(w io.Writer, style Style) error {
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
		result.write(&out, style)
	}
	fmt.Fprintf(&out, "\n%d ok, %s, %s, %d skipped\n", r.Count(OK),
		count(r.Count(Warning), "warning"), count(r.Count(Failure), "failure"), r.Count(Skipped))
	_, err := io.WriteString(w, out.String())
	return err
}

// write writes one result.
func (r *Result) write(out *strings.Builder, style Style) {
	sign := symbols[r.Level].word
	if style.UTF8 {
		sign = symbols[r.Level].sign
	}
	// Columns, not bytes: the signs are one column wide.
	indent := strings.Repeat(" ", len([]rune(sign))+len(" GB101 "))
	text := r.Code + " " + r.Title + ": " + r.Message
	lines := wrap(text, width-len([]rune(sign))-1, strings.Repeat(" ", len("GB101 ")))
	if style.Color {
		sign = symbols[r.Level].color + sign + "\x1b[0m"
	}
	out.WriteString(sign + " " + lines[0] + "\n")
	for _, line := range lines[1:] {
		out.WriteString(indent[:len(indent)-len("GB101 ")] + line + "\n")
	}
	for _, detail := range r.Details {
		for _, line := range wrap(detail, width-len(indent), "") {
			out.WriteString(indent + line + "\n")
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

// wrap breaks a text between words. Lines after the first begin with indent.
func wrap(text string, limit int, indent string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= limit:
			line += " " + word
		default:
			lines = append(lines, line)
			line = indent + word
		}
	}
	return append(lines, line)
}
