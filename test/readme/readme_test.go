package readme

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// firstUse are the sections that lead from nothing to a pod that is packed and
// explained.
var firstUse = []string{"Is it worth it?", "Install", "Opt in", "See it work"}

// TestReadme is a reader who follows the README from the first command to the last.
func TestReadme(t *testing.T) {
	commands := readCommands(t)
	r := newReader(t)
	t.Cleanup(func() { r.noPodWasRefused(t) })
	var first, last time.Time
	took := make([]time.Duration, len(commands))
	for i, c := range commands {
		special := steps[c.text]
		if special.before != nil {
			special.before(t, r)
		}
		start := time.Now()
		run := runAsShown
		if special.instead != nil {
			run = special.instead
		}
		out := run(t, r, c.text)
		took[i] = time.Since(start)
		if slices.Contains(firstUse, c.section) {
			if first.IsZero() {
				first = start
			}
			last = time.Now()
		}
		if special.after != nil {
			special.after(t, r, out)
		}
	}
	t.Logf("README.md from %q to %q took %.0f s on this machine", firstUse[0], firstUse[len(firstUse)-1], last.Sub(first).Seconds())
	for i, c := range commands {
		t.Logf("%6.1f s  line %d: %s", took[i].Seconds(), c.line, cmp.Or(steps[c.text].why, "as shown")+": "+c.text)
	}
}

// readCommands reads the README, and checks that the table is about it.
func readCommands(t *testing.T) []command {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := shown(string(content))
	sections := map[string]int{}
	unused := maps.Clone(steps)
	for _, c := range commands {
		sections[c.section]++
		delete(unused, c.text)
	}
	for _, text := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("steps has a command that README.md does not show: %s", text)
	}
	for _, section := range append(slices.Clone(firstUse), "Uninstall") {
		if sections[section] == 0 {
			t.Errorf("README.md shows no command in section %q", section)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(steps)) {
		if (steps[text].instead == nil) != (steps[text].why == "") {
			t.Errorf("the step %s must have both, or neither, of what is done instead and why", text)
		}
	}
	if t.Failed() {
		var texts []string
		for _, c := range commands {
			texts = append(texts, c.text)
		}
		t.Fatalf("README.md shows:\n%s", strings.Join(texts, "\n"))
	}
	return commands
}
