package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// sample is a report in which the burst took 2 nodes without and 1 with us.
func sample() report {
	without := scenario.Placement{Nodes: []scenario.NodeUse{{Name: "n0", GPUs: 2, Pods: []int{1}}, {Name: "n1", GPUs: 2, Pods: []int{1}}}}
	with := scenario.Placement{Nodes: []scenario.NodeUse{{Name: "n0", GPUs: 2, Pods: []int{1, 1}}, {Name: "n1", GPUs: 2}}}
	return report{Scenarios: []entry{{Name: "burst", Title: `a <burst> & "more"`, Without: newResult(without), With: newResult(with), Ideal: 1}}}
}

// The keys of demo.json are a contract.
func TestReportKeys(t *testing.T) {
	dir := t.TempDir()
	if err := sample().write(dir); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, reportFile))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Scenarios []struct {
			Name    string
			Without struct{ NodesUsed int }
			With    struct{ NodesUsed, Pending int }
			Ideal   int
		}
		Denied *int
	}
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	s := got.Scenarios[0]
	if s.Name != "burst" || s.Without.NodesUsed != 2 || s.With.NodesUsed != 1 || s.Ideal != 1 || got.Denied == nil {
		t.Errorf("got %+v from\n%s", got, content)
	}
}

// The pictures stand alone and are well-formed, whatever a title holds.
func TestPictures(t *testing.T) {
	page, err := sample().page()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(page, []byte("<burst>")) || bytes.Contains(page, []byte("http")) {
		t.Errorf("the page is not escaped or not self-contained:\n%s", page)
	}
	decoder := xml.NewDecoder(bytes.NewReader(sample().burst().picture()))
	rects := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "rect" {
			rects++
		}
	}
	if rects != 1+2*2*2+2 { // the canvas; two columns of two nodes with two GPUs; the legend
		t.Errorf("%d rectangles, want 11", rects)
	}
}

var update = flag.Bool("update", false, "write testdata/demo.html")

// The page is what testdata/demo.html is, which test/browser opens in a browser.
func TestPage(t *testing.T) {
	page, err := burst().page()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", pageFile)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with go test ./demo -update", err)
	}
	if diff := cmp.Diff(string(want), string(page)); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

// burst is a report as the demo writes it: 64 pods on 16 nodes with 8 GPUs, 4 on
// each without and 8 on each of 8 with us, and what is left when a node's pods end.
func burst() report {
	place := func(perNode, pods int) result {
		var p scenario.Placement
		for i := range 16 {
			node := scenario.NodeUse{Name: fmt.Sprintf("burst-%02d", i), GPUs: 8}
			for range min(perNode, pods) {
				node.Pods = append(node.Pods, 1)
				pods--
			}
			p.Nodes = append(p.Nodes, node)
		}
		return newResult(p)
	}
	return report{Scenarios: []entry{{
		Name: "burst", Title: "a ReplicaSet of 64 one-GPU pods, created at once, on 16 nodes with 8 GPUs",
		Without: place(4, 64), With: place(8, 64), Emptied: place(8, 56), Ideal: 8,
	}}}
}

// The demo fails when it did not show what it promises.
func TestReportCheck(t *testing.T) {
	tests := map[string]struct {
		change func(*report)
		want   string
	}{
		"not packed":      {func(r *report) { r.Scenarios[0].Problem = "spread" }, "spread"},
		"denied":          {func(r *report) { r.Denied = 1 }, "denied"},
		"nothing to pack": {func(*report) {}, "nothing to pack"},
		"packed":          {func(r *report) { r.Scenarios[0].Without.NodesUsed = 16 }, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := sample()
			tc.change(&r)
			err := r.check()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Without colours the drawing is plain text.
func TestTerminalPlain(t *testing.T) {
	var out bytes.Buffer
	e := sample().Scenarios[0]
	(&terminal{out: &out}).sideBySide(e.Without.Placement, e.With.Placement)
	if text := out.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, "n0       #.       ##") {
		t.Errorf("got:\n%s", text)
	}
}
