package terminal

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Columns is the width that output for people keeps to where names allow it.
const Columns = 80

// Screen is what the output can show.
type Screen struct {
	// Terminal: a person looks at it; Colour: it takes escape codes for colours;
	// Unicode: it shows more than ASCII.
	Terminal, Colour, Unicode bool
}

// ScreenOf looks at the output and at the environment: NO_COLOR, TERM and the
// locale.
func ScreenOf(out io.Writer) Screen {
	file, ok := out.(*os.File)
	terminal := ok && term.IsTerminal(int(file.Fd()))
	return Screen{
		Terminal: terminal,
		Colour:   terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Unicode:  isUTF8(),
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
	// Clear moves the cursor home and clears the screen.
	Clear = "\x1b[H\x1b[2J"
)

// Bold makes a text bold if the screen can.
func (s Screen) Bold(text string) string { return s.style(codeBold, text) }

// style puts an escape code around a text if the screen takes it.
func (s Screen) style(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return code + text + codeReset
}
