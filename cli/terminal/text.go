package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Wrap breaks a text into lines of at most so many characters, longer words kept
// whole.
func Wrap(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && len([]rune(lines[last]))+1+len([]rune(word)) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// Printable replaces control characters: anyone may write an annotation, and the
// terminal would obey it.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// labelWidth is the width of the labels of PrintLabelled.
const labelWidth = 11

// PrintLabelled writes a label and a text beside it.
func PrintLabelled(out io.Writer, s Screen, label, text string) {
	for i, line := range Wrap(Printable(text), Columns-labelWidth) {
		if i > 0 {
			label = ""
		}
		padding := strings.Repeat(" ", labelWidth-len(label))
		fmt.Fprintln(out, s.Bold(label)+padding+line)
	}
}

// Count writes a number with a noun in the right form.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Decimal writes a number.
func Decimal(n int64) string { return strconv.FormatInt(n, 10) }

// Few joins the first names, at most so many, and counts the others.
func Few(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
