package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action  string
	Test    string
	Elapsed float64 // seconds
	Output  string
}

// counter counts the tests that its input, the output of go test -json, reports,
// and says of each how it ended. Tests within tests are not counted.
type counter struct {
	tests *Tests
	out   io.Writer
	// line is the beginning of a line whose end has not come.
	line bytes.Buffer
}

func newCounter(tests *Tests, out io.Writer) *counter { return &counter{tests: tests, out: out} }

// Write takes a piece of the output.
func (c *counter) Write(piece []byte) (int, error) {
	written := len(piece)
	for {
		line, rest, whole := bytes.Cut(piece, []byte("\n"))
		c.line.Write(line)
		if !whole {
			return written, nil
		}
		c.count()
		c.line.Reset()
		piece = rest
	}
}

// Close returns an error when the output ended within a line.
func (c *counter) Close() error {
	if c.line.Len() > 0 {
		return fmt.Errorf("the output of go test ends within a line: %.200s", c.line.Bytes())
	}
	return nil
}

// count takes the line that is complete. A line that is no event comes from the go
// command, which writes messages of the compiler that way.
func (c *counter) count() {
	var e event
	if err := json.Unmarshal(c.line.Bytes(), &e); err != nil {
		fmt.Fprintf(c.out, "  %s\n", c.line.Bytes())
		return
	}
	// What belongs to no test: the start of the control plane, and compiler errors.
	if e.Output != "" && e.Test == "" {
		fmt.Fprintf(c.out, "  %s\n", strings.TrimRight(e.Output, "\n"))
	}
	if e.Test == "" || strings.Contains(e.Test, "/") {
		return
	}
	switch e.Action {
	case "pass":
		c.tests.Passed++
	case "fail":
		c.tests.Failed = append(c.tests.Failed, e.Test)
	case "skip":
		c.tests.Skipped = append(c.tests.Skipped, e.Test)
	default:
		return
	}
	fmt.Fprintf(c.out, "  %s %s (%.1f s)\n", e.Action, e.Test, e.Elapsed)
}
