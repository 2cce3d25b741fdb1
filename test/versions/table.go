package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

// The table is between these lines of the document.
const (
	tableStart = "<!-- Written by make test-versions: start -->"
	tableEnd   = "<!-- Written by make test-versions: end -->"
)

// tableHeader are the first two lines of the table. A cell with two numbers is
// about one and two replicas of the webhook.
const tableHeader = "| Kubernetes | end-to-end tests | 64 pods on 16 nodes, one by one | in a burst | 240 pods on 60 nodes, one by one | in a burst | scores of the scheduler that our model predicts |\n" +
	"|---|---|---|---|---|---|---|\n"

// notMeasured is the cell of what was not run or gave no result.
const notMeasured = "–"

// updateDocument puts the result's row into the table of the document. Rows of
// other versions stay.
func updateDocument(path string, result Result) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("writing the table of versions: %w", err)
	}
	updated, err := updateTable(string(text), result)
	if err != nil {
		return fmt.Errorf("writing the table of versions into %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(updated), 0o644); err != nil {
		return fmt.Errorf("writing the table of versions: %w", err)
	}
	return nil
}

// updateTable returns the document with the result's row in its table.
func updateTable(document string, result Result) (string, error) {
	before, rest, ok := strings.Cut(document, tableStart+"\n")
	table, after, ended := strings.Cut(rest, tableEnd+"\n")
	if !ok || !ended {
		return "", fmt.Errorf("the lines %q and %q must enclose the table", tableStart, tableEnd)
	}
	rows := []string{row(result)}
	for line := range strings.Lines(table) {
		if version := rowVersion(line); version != "" && version != "v"+result.Version {
			rows = append(rows, line)
		}
	}
	slices.SortFunc(rows, func(a, b string) int { return semver.Compare(rowVersion(a), rowVersion(b)) })
	return before + tableStart + "\n" + tableHeader + strings.Join(rows, "") + tableEnd + "\n" + after, nil
}

// rowVersion returns the version, with v, that a row is about, nothing for another
// line.
func rowVersion(line string) string {
	cells := strings.Split(line, "|")
	if len(cells) < 2 {
		return ""
	}
	version := "v" + strings.TrimSpace(cells[1])
	if !semver.IsValid(version) {
		return ""
	}
	return version
}

// row is the result's line of the table.
func row(r Result) string {
	cells := []string{
		r.Version,
		testsCell(r.EndToEnd),
		packingCell(r.Packing, 16, workload.Sequential),
		packingCell(r.Packing, 16, workload.Burst),
		packingCell(r.Packing, 60, workload.Sequential),
		packingCell(r.Packing, 60, workload.Burst),
		scoresCell(r.Scores),
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

func testsCell(t *Tests) string {
	if t == nil || t.Passed+len(t.Failed) == 0 {
		return notMeasured
	}
	cell := fmt.Sprintf("%d passed, %d failed", t.Passed, len(t.Failed))
	if len(t.Skipped) > 0 {
		cell += fmt.Sprintf(", %d skipped", len(t.Skipped))
	}
	return cell
}

// packingCell is the nodes used with one and two replicas, and what would be ideal.
func packingCell(rows []Packing, nodes int, arrival workload.Arrival) string {
	used, ideal := [2]string{notMeasured, notMeasured}, 0
	for _, p := range rows {
		if p.Nodes == nodes && p.Arrival == string(arrival) && p.Replicas >= 1 && p.Replicas <= len(used) {
			used[p.Replicas-1], ideal = fmt.Sprint(p.OccupiedNodes), p.IdealNodes
		}
	}
	if ideal == 0 {
		return notMeasured
	}
	return fmt.Sprintf("%s / %s (ideal %d)", used[0], used[1], ideal)
}

func scoresCell(s *Scores) string {
	if s == nil {
		return notMeasured
	}
	return fmt.Sprintf("%d of %d", s.Equal, s.Compared)
}
