package readme

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// command is a command that a document shows.
type command struct {
	// line is where it begins, from 1.
	line int
	// section is the heading of the second level above it.
	section string
	// text is the command on one line, without its comment.
	text string
}

var (
	// inText finds commands in running text.
	inText = regexp.MustCompile("`((?:make|kubectl|helm|bin/gpu-binpacker)(?: [^`]+)?)`")
	// comment ends a command in a block.
	comment = regexp.MustCompile(`(?:^|\s+)#\s+(.*)$`)
)

// alternative begins a comment that shows another command.
const alternative = "or: "

// shown returns the commands of a document in their order: those of its sh blocks,
// those that a comment there offers instead, and those in the text between, unless
// the same was shown before.
func shown(document string) []command {
	s := &scanner{seen: map[string]bool{}}
	for i, line := range strings.Split(document, "\n") {
		s.line = i + 1
		heading, isHeading := strings.CutPrefix(line, "## ")
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && s.block:
			s.block = false
		case isFence:
			s.block, s.shell = true, fence == "sh"
		case s.block && s.shell:
			s.blockLine(line)
		case s.block:
		case isHeading:
			s.section = heading
		default:
			for _, match := range inText.FindAllStringSubmatch(line, -1) {
				if !s.seen[match[1]] {
					s.add(s.line, match[1])
				}
			}
		}
	}
	return s.commands
}

// scanner is what shown knows when it has read some lines.
type scanner struct {
	line     int
	section  string
	commands []command
	seen     map[string]bool

	// block is whether the line is in a block, shell whether that is of sh.
	block, shell bool
	// unfinished is what stands before line breaks that a backslash takes back;
	// it began in line begin.
	unfinished string
	begin      int
}

// blockLine reads a line of a block of sh.
func (s *scanner) blockLine(line string) {
	if s.unfinished == "" {
		s.begin = s.line
	}
	if start, more := strings.CutSuffix(line, `\`); more {
		s.unfinished += strings.TrimSpace(start) + " "
		return
	}
	text := s.unfinished + strings.TrimSpace(line)
	s.unfinished = ""
	remark := comment.FindStringSubmatch(text)
	s.add(s.begin, strings.TrimSpace(comment.ReplaceAllString(text, "")))
	if remark != nil {
		if other, ok := strings.CutPrefix(remark[1], alternative); ok {
			s.add(s.begin, other)
		}
	}
}

// add adds a command unless it is empty.
func (s *scanner) add(line int, text string) {
	if text != "" {
		s.seen[text] = true
		s.commands = append(s.commands, command{line: line, section: s.section, text: text})
	}
}

func TestShown(t *testing.T) {
	got := shown(strings.Join([]string{
		"# Title",                 // 1
		"```sh",                   // 2
		"make build   # into bin", // 3
		"",                        // 4
		"# only a comment",        // 5
		"```",                     // 6
		"## First",                // 7
		"Not `make`-shaped: `makefile`, `kubectl-x` and `a/helm`; but `make build` again and `kubectl get pods`.", // 8
		"```",              // 9
		"make nothing",     // 10
		"## no heading",    // 11
		"```",              // 12
		"```sh",            // 13
		`helm install x \`, // 14
		`  --set a=b#c`,    // 15
		"make build",       // 16
		"kubectl delete x  # or: helm uninstall x", // 17
		"```",                       // 18
		"### Below the first",       // 19
		"`bin/gpu-binpacker nodes`", // 20
	}, "\n"))
	want := []command{
		{3, "", "make build"},
		{8, "First", "make"},
		{8, "First", "kubectl get pods"},
		{14, "First", "helm install x --set a=b#c"},
		{16, "First", "make build"},
		{17, "First", "kubectl delete x"},
		{17, "First", "helm uninstall x"},
		{20, "First", "bin/gpu-binpacker nodes"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(command{})); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}
