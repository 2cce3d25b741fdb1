package terminal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		width int
		want  []string
	}{
		"fits":      {"one two", 7, []string{"one two"}},
		"one over":  {"one two", 6, []string{"one", "two"}},
		"long word": {"a 123456789 b", 4, []string{"a", "123456789", "b"}},
		"not ASCII": {"é é", 3, []string{"é é"}},
		"nothing":   {"", 5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Wrap(tc.text, tc.width)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsUTF8(t *testing.T) {
	for name, tc := range map[string]struct {
		all, ctype, lang string
		want             bool
	}{
		"lang":                {"", "", "en_GB.UTF-8", true},
		"other spelling":      {"", "", "C.utf8", true},
		"C":                   {"", "", "C", false},
		"the first that says": {"C", "", "en_GB.UTF-8", false},
		"ctype before lang":   {"", "C.UTF-8", "C", true},
		"nothing":             {"", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LC_ALL", tc.all)
			t.Setenv("LC_CTYPE", tc.ctype)
			t.Setenv("LANG", tc.lang)
			if got := isUTF8(); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Colours are for terminals only.
func TestStyle(t *testing.T) {
	if got := (Screen{}).style(codeBold, "x"); got != "x" {
		t.Errorf("without colour %q", got)
	}
	if got := (Screen{Colour: true}).style(codeBold, "x"); got != "\x1b[1mx\x1b[0m" {
		t.Errorf("with colour %q", got)
	}
	if s := ScreenOf(&strings.Builder{}); s.Terminal || s.Colour {
		t.Errorf("a buffer is taken for a terminal: %+v", s)
	}
}

// The heading is bold and rows that matter less are dim; that moves no column.
func TestTable(t *testing.T) {
	var tab Table
	tab.Add("NODE", "USED")
	tab.Add("gpu-10", "")
	tab.DimLast()
	tab.Add("g", "1")
	for name, tc := range map[string]struct {
		screen Screen
		want   string
	}{
		"plain":   {Screen{}, "NODE    USED\ngpu-10\ng       1\n"},
		"colours": {Screen{Colour: true}, "\x1b[1mNODE    USED\x1b[0m\n\x1b[2mgpu-10\x1b[0m\ng       1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			tab.Print(&out, tc.screen)
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A terminal is not told what to do by what a user wrote.
func TestPrintLabelled(t *testing.T) {
	var out strings.Builder
	PrintLabelled(&out, Screen{}, "Decided", "steered to \x1b[2Jnode\x07 "+strings.Repeat("x", 60)+" y")
	want := "Decided    steered to [2Jnode\n           " + strings.Repeat("x", 60) + " y\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
