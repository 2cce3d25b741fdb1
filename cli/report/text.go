package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
)

// WriteText writes the figures for a terminal of 80 columns.
func (r *Report) WriteText(out io.Writer) error {
	var b strings.Builder
	writeWrapped(&b, "", r.Summary())
	for _, t := range r.tables() {
		label := terminal.Columns - 15*len(t.Columns)
		fmt.Fprintf(&b, "\n%-*s", label, cut(t.Title, label-1))
		for _, c := range t.Columns {
			fmt.Fprintf(&b, "%15s", c)
		}
		b.WriteByte('\n')
		for _, row := range t.Rows {
			fmt.Fprintf(&b, "  %-*s", label-2, row.Label)
			for _, v := range row.Values {
				fmt.Fprintf(&b, "%15s", v)
			}
			b.WriteByte('\n')
		}
	}
	r.writeRemarks(&b)
	b.WriteString("\nHow this was computed\n")
	for _, a := range r.Assumptions {
		writeWrapped(&b, "- ", a)
	}
	writeWrapped(&b, "- ", r.origin())
	_, err := io.WriteString(out, b.String())
	return err
}

// writeRemarks writes what else there is to say: pods that stay, prices, notes.
func (r *Report) writeRemarks(b *strings.Builder) {
	for i := range r.Scenarios {
		if lines := r.Scenarios[i].keptLines(); len(lines) > 0 {
			fmt.Fprintf(b, "\nStay where they are, %s\n", r.Scenarios[i].Short)
			for _, l := range lines {
				writeWrapped(b, "- ", l)
			}
		}
	}
	if lines := r.remarks(); len(lines) > 0 {
		b.WriteString("\nNotes\n")
		for _, l := range lines {
			writeWrapped(b, "- ", l)
		}
	}
}

// remarks are the notes, and those on prices.
func (r *Report) remarks() []string {
	lines := r.Notes
	if r.Prices != nil {
		lines = append(lines[:len(lines):len(lines)], fmt.Sprintf("Prices: %s; a month has %d hours.", r.Prices.Rule, r.Prices.HoursPerMonth))
	}
	if text := r.Prices.unpricedText(); text != "" {
		lines = append(lines, text)
	}
	return lines
}

// origin says what the report was made from, when and by what.
func (r *Report) origin() string {
	text := fmt.Sprintf("Made by gpu-binpacker %s from %s, as of %s", r.Version, r.Source, r.TakenAt.Format(time.RFC3339))
	if r.ServerVersion != "" {
		text += ", Kubernetes " + r.ServerVersion
	}
	if r.Hashed {
		text += ", names replaced"
	}
	return text + "."
}

// writeWrapped writes a paragraph, its further lines indented as far as the first.
func writeWrapped(b *strings.Builder, first, text string) {
	for _, line := range terminal.Wrap(text, terminal.Columns-len(first)) {
		b.WriteString(first + line + "\n")
		first = strings.Repeat(" ", len(first))
	}
}

func cut(text string, length int) string {
	if len(text) > length {
		return text[:length-3] + "..."
	}
	return text
}

// WriteMarkdown writes the figures as Markdown.
func (r *Report) WriteMarkdown(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# GPU bin-packing: a simulation\n\n%s\n", escapeMarkdown(r.Summary()))
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n| %s |", escapeMarkdown(t.Title))
		for _, c := range t.Columns {
			fmt.Fprintf(&b, " %s |", c)
		}
		b.WriteString("\n|---|" + strings.Repeat("---:|", len(t.Columns)) + "\n")
		for _, row := range t.Rows {
			fmt.Fprintf(&b, "| %s | %s |\n", row.Label, strings.Join(row.Values, " | "))
		}
	}
	for i := range r.Scenarios {
		markdownList(&b, "Stay where they are, "+r.Scenarios[i].Short, r.Scenarios[i].keptLines())
	}
	markdownList(&b, "Notes", r.remarks())
	markdownList(&b, "How this was computed", append(r.Assumptions[:len(r.Assumptions):len(r.Assumptions)], r.origin()))
	_, err := io.WriteString(out, b.String())
	return err
}

func markdownList(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "- %s\n", escapeMarkdown(l))
	}
}

// escapeMarkdown escapes what names and file names may hold.
var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[", `\[`)

func escapeMarkdown(text string) string { return markdownEscapes.Replace(text) }

// WriteJSON writes the report with all nodes.
func (r *Report) WriteJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
