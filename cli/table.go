package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// columns is the width that output for people keeps to where names allow it.
const columns = 80

// choice is a flag with a fixed set of values.
type choice[T ~string] struct {
	value   T
	allowed []T
}

func (c *choice[T]) String() string { return string(c.value) }

func (c *choice[T]) Type() string { return "string" }

// Set refuses a value that is not one of the set.
func (c *choice[T]) Set(text string) error {
	if !slices.Contains(c.allowed, T(text)) {
		return fmt.Errorf("must be %s", c.words())
	}
	c.value = T(text)
	return nil
}

// bind adds the flag to a command, with its values for the shell's completion.
func (c *choice[T]) bind(cmd *cobra.Command, name, shorthand, usage string) {
	cmd.Flags().VarP(c, name, shorthand, usage)
	complete := cobra.FixedCompletions(c.texts(), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // there is no such flag, or it has completions: a bug here
	}
}

func (c *choice[T]) texts() []string {
	texts := make([]string, len(c.allowed))
	for i, a := range c.allowed {
		texts[i] = string(a)
	}
	return texts
}

// words lists the values: a, b or c.
func (c *choice[T]) words() string {
	words := c.texts()
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// output is the form of what a command prints.
type output string

const (
	outputTable output = "table"
	outputWide  output = "wide"
	outputJSON  output = "json"
	outputYAML  output = "yaml"
)

// writeObject prints a value for machines.
func writeObject(out io.Writer, as output, object any) error {
	var data []byte
	var err error
	if as == outputYAML {
		data, err = yaml.Marshal(object)
	} else {
		data, err = json.MarshalIndent(object, "", "  ")
		data = append(data, '\n')
	}
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	_, err = out.Write(data)
	return err
}

// screen is what the output can show.
type screen struct {
	// terminal: a person looks at it; colour: it takes escape codes for colours;
	// unicode: it shows more than ASCII.
	terminal, colour, unicode bool
}

// screenOf looks at the output and at the environment: NO_COLOR, TERM and the
// locale.
func screenOf(out io.Writer) screen {
	file, ok := out.(*os.File)
	terminal := ok && term.IsTerminal(int(file.Fd()))
	return screen{
		terminal: terminal,
		colour:   terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		unicode:  isUTF8(),
	}
}

// isUTF8 tells whether the locale's encoding is UTF-8, by the first of its
// variables that is set.
func isUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(os.Getenv(name)); locale != "" {
			return strings.HasSuffix(locale, "utf-8") || strings.HasSuffix(locale, "utf8")
		}
	}
	return false
}

// Escape codes.
const (
	codeBold  = "\x1b[1m"
	codeDim   = "\x1b[2m"
	codeReset = "\x1b[0m"
	// codeClear moves the cursor home and clears the screen.
	codeClear = "\x1b[H\x1b[2J"
)

// style puts an escape code around a text if the screen takes it.
func (s screen) style(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return code + text + codeReset
}

// table is laid out in columns as wide as their widest cell.
type table struct {
	rows [][]string
	// dim are the rows that matter less.
	dim map[int]bool
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// dimLast makes the last row one that matters less.
func (t *table) dimLast() {
	if t.dim == nil {
		t.dim = map[int]bool{}
	}
	t.dim[len(t.rows)-1] = true
}

// lines returns one line per row, without trailing blanks.
func (t *table) lines() []string {
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

// print writes the table with its first line as a heading.
func (t *table) print(out io.Writer, s screen) {
	for i, line := range t.lines() {
		switch {
		case i == 0:
			line = s.style(codeBold, line)
		case t.dim[i]:
			line = s.style(codeDim, line)
		}
		fmt.Fprintln(out, line)
	}
}

// wrap breaks a text into lines of at most so many characters, longer words kept
// whole.
func wrap(text string, width int) []string {
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

// printable replaces control characters: anyone may write an annotation, and the
// terminal would obey it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// labelWidth is the width of the labels of printLabelled.
const labelWidth = 11

// printLabelled writes a label and a text beside it.
func printLabelled(out io.Writer, s screen, label, text string) {
	for i, line := range wrap(printable(text), columns-labelWidth) {
		if i > 0 {
			label = ""
		}
		padding := strings.Repeat(" ", labelWidth-len(label))
		fmt.Fprintln(out, s.style(codeBold, label)+padding+line)
	}
}
