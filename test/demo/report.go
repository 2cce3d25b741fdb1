package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// Files of the report.
const (
	reportFile  = "demo.json"
	pageFile    = "demo.html"
	pictureFile = "demo.svg" // the README's picture
)

// report is the content of demo.json; its keys are a contract.
type report struct {
	Scenarios []entry `json:"scenarios"`
	// Denied is how many pods the API server refused because of the webhook.
	Denied int `json:"denied"`
	// FailedOpen is how many pods were created unsteered because a call of the
	// webhook failed.
	FailedOpen int `json:"failedOpen"`
}

// entry is one scenario.
type entry struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Without result `json:"without"`
	With    result `json:"with"`
	// Emptied is the placement after the pods of one node ended.
	Emptied result `json:"emptied,omitzero"`
	Ideal   int    `json:"ideal"`
	// Problem says what was not as expected with the webhook.
	Problem string `json:"problem,omitempty"`
}

// result is one placement, as read from the API server.
type result struct {
	NodesUsed int `json:"nodesUsed"`
	NodesFull int `json:"nodesFull"`
	scenario.Placement
}

func newResult(p scenario.Placement) result {
	return result{NodesUsed: p.NodesUsed(), NodesFull: p.NodesFull(), Placement: p}
}

// burst is the scenario that the last line and the picture are about.
func (r report) burst() entry {
	for _, e := range r.Scenarios {
		if e.Name == "burst" {
			return e
		}
	}
	return entry{}
}

// leastSpread is how many of the burst's 16 nodes the scheduler alone must use
// for the comparison to mean anything.
const leastSpread = 14

// check returns an error when the demo did not show what it is to show.
func (r report) check() error {
	for _, e := range r.Scenarios {
		if e.Problem != "" {
			return fmt.Errorf("scenario %s: %s (calls of the webhook that failed: %d)", e.Name, e.Problem, r.FailedOpen)
		}
	}
	if r.Denied > 0 {
		return fmt.Errorf("%d pods were denied because of the webhook", r.Denied)
	}
	if used := r.burst().Without.NodesUsed; used < leastSpread {
		return fmt.Errorf("the burst without the webhook used only %d nodes: there was nothing to pack", used)
	}
	return nil
}

// write writes the reports into dir.
func (r report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, reportFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	page, err := r.page()
	if err != nil {
		return fmt.Errorf("rendering the page: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, pageFile), page, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, pictureFile), r.burst().picture(), 0o644)
}
