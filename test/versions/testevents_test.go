package main

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const events = `{"Action":"start","Package":"e2e"}
{"Action":"output","Package":"e2e","Output":"control plane ready\n"}
{"Action":"run","Package":"e2e","Test":"TestA"}
{"Action":"run","Package":"e2e","Test":"TestA/case"}
{"Action":"output","Package":"e2e","Test":"TestA/case","Output":"detail\n"}
{"Action":"fail","Package":"e2e","Test":"TestA/case","Elapsed":1}
{"Action":"fail","Package":"e2e","Test":"TestA","Elapsed":1.25}
{"Action":"pass","Package":"e2e","Test":"TestB","Elapsed":0}
{"Action":"skip","Package":"e2e","Test":"TestC","Elapsed":0}
{"Action":"fail","Package":"e2e","Elapsed":2}
`

// Events arrive in pieces of any size.
func TestCounter(t *testing.T) {
	for name, reader := range map[string]io.Reader{
		"at once":      strings.NewReader(events),
		"byte by byte": iotest.OneByteReader(strings.NewReader(events)),
	} {
		t.Run(name, func(t *testing.T) {
			var tests Tests
			var out strings.Builder
			c := newCounter(&tests, &out)
			if _, err := io.Copy(c, reader); err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			want := Tests{Passed: 1, Failed: []string{"TestA"}, Skipped: []string{"TestC"}}
			if diff := cmp.Diff(want, tests); diff != "" {
				t.Errorf("tests (-want +got):\n%s", diff)
			}
			const shown = "  control plane ready\n  fail TestA (1.2 s)\n  pass TestB (0.0 s)\n  skip TestC (0.0 s)\n"
			if diff := cmp.Diff(shown, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCounterNoticesABrokenEnd(t *testing.T) {
	var tests Tests
	c := newCounter(&tests, io.Discard)
	if _, err := io.WriteString(c, events+`{"Action":"pa`); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), `{"Action":"pa`) {
		t.Errorf("error %v does not quote the end", err)
	}
}
