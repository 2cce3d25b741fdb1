package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSummarize(t *testing.T) {
	o := options{nodes: 10, pods: 20, runs: 2}
	results := summarize(o, map[string][]figures{
		none: {{created: 100, scheduled: 300}, {created: 200, scheduled: 100}},
		noop: {{created: 90, scheduled: 200}, {created: 90, scheduled: 200}},
		ours: {{created: 120, scheduled: 190, steered: 20}, {created: 120, scheduled: 190, steered: 20}},
	})
	var table strings.Builder
	if err := writeTable(&table, results); err != nil {
		t.Fatal(err)
	}
	// Medians of none: 150 and 200. 90/150 = 0.6, 120/150 = 0.8, 190/200 = 0.95.
	for _, want := range []string{"0.60", "0.80", "0.95"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %s in\n%s", want, &table)
		}
	}
	text, err := json.Marshal(results[2])
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"system":"ours"`, `"podsPerSecond":120`, `"scheduledPerSecond":190`} {
		if !strings.Contains(string(text), key) {
			t.Errorf("no %s in %s", key, text)
		}
	}
}
