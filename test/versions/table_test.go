package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// measured is a result of all suites.
func measured(version string) Result {
	result := Result{
		Version:  version,
		EndToEnd: &Tests{Passed: 30, Failed: []string{"TestA"}, Skipped: []string{"TestB"}},
		Scores:   &Scores{Compared: 1200, Equal: 1199},
	}
	for _, size := range []struct{ nodes, pods, ideal int }{{16, 64, 8}, {60, 240, 30}} {
		for _, arrival := range []string{"sequential", "burst"} {
			for replicas := 1; replicas <= 2; replicas++ {
				result.Packing = append(result.Packing, Packing{
					Nodes: size.nodes, Pods: size.pods, Arrival: arrival, Replicas: replicas,
					OccupiedNodes: size.ideal, IdealNodes: size.ideal, Bound: size.pods,
				})
			}
		}
	}
	return result
}

const measuredCells = "| 30 passed, 1 failed, 1 skipped | 8 / 8 (ideal 8) | 8 / 9 (ideal 8) | 30 / 30 (ideal 30) | 30 / 30 (ideal 30) | 1199 of 1200 |\n"

func TestUpdateTable(t *testing.T) {
	const before, after = "# Compatibility\n\n", "\n## More\n\n| 1.2.3 | another table |\n"
	burst := measured("1.34.4")
	burst.Packing[3].OccupiedNodes = 9
	tests := map[string]struct {
		rows   string
		result Result
		want   string
	}{
		"first":    {"", burst, "| 1.34.4 " + measuredCells},
		"replaced": {tableHeader + "| 1.34.4 | old |\n", burst, "| 1.34.4 " + measuredCells},
		"between": {
			tableHeader + "| 1.33.13 | old |\n| 1.37.2 | old |\n", burst,
			"| 1.33.13 | old |\n| 1.34.4 " + measuredCells + "| 1.37.2 | old |\n",
		},
		"by number, not by letter": {
			tableHeader + "| 1.34.10 | old |\n", burst, "| 1.34.4 " + measuredCells + "| 1.34.10 | old |\n",
		},
		"not built": {"", Result{Version: "1.20.0"}, "| 1.20.0 | – | – | – | – | – | – |\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := updateTable(before+tableStart+"\n"+tc.rows+tableEnd+"\n"+after, tc.result)
			if err != nil {
				t.Fatal(err)
			}
			want := before + tableStart + "\n" + tableHeader + tc.want + tableEnd + "\n" + after
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpdateTableNeedsItsPlace(t *testing.T) {
	for _, document := range []string{"", tableStart + "\n", tableEnd + "\n" + tableStart + "\n"} {
		if _, err := updateTable(document, measured("1.34.4")); err == nil || !strings.Contains(err.Error(), "enclose") {
			t.Errorf("%q: error %v", document, err)
		}
	}
}

// The real document has a place for the table.
func TestDocumentHasATable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := updateTable(string(text), measured("1.34.4")); err != nil {
		t.Error(err)
	}
}
