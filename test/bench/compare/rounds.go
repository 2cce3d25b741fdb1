package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// runRounds runs the benchmarks of both sides in turns, each once per round, and
// writes what they print to the reports.
func runRounds(ctx context.Context, o options, before, after *side) error {
	for _, s := range []*side{before, after} {
		if err := s.startReport(); err != nil {
			return err
		}
	}
	found := false
	for round := 1; round <= o.rounds; round++ {
		for _, name := range packagesOfBoth(o, round, before, after) {
			fmt.Fprintf(o.progress, "round %d of %d: %s\n", round, o.rounds, name)
			for _, s := range inTurns(round, before, after) {
				text, err := s.run(ctx, o, name)
				if err != nil {
					return err
				}
				found = found || strings.Contains(text, " ns/op")
				if err := s.addToReport(text); err != nil {
					return err
				}
			}
		}
		if !found {
			return fmt.Errorf("-bench, -packages: neither tree has a benchmark %q in a folder %q", o.bench, o.packages)
		}
	}
	return nil
}

func (s *side) startReport() error {
	if err := os.MkdirAll(filepath.Dir(s.report), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", s.report, err)
	}
	// No "key: value", which benchstat would take for a difference of the machines.
	if err := os.WriteFile(s.report, []byte("# "+s.title+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", s.report, err)
	}
	return nil
}

// addToReport keeps what there is even if the run is interrupted later.
func (s *side) addToReport(text string) error {
	file, err := os.OpenFile(s.report, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("writing %s: %w", s.report, err)
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", s.report, err)
	}
	return nil
}

// packagesOfBoth are the packages that either side has, sorted. In the first round
// it says which are in one only.
func packagesOfBoth(o options, round int, before, after *side) []string {
	all := maps.Clone(before.binaries)
	maps.Copy(all, after.binaries)
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		for _, s := range []*side{before, after} {
			if s.binaries[name] == "" && round == 1 {
				fmt.Fprintf(o.progress, "%s has no benchmarks in %s\n", s.name, name)
			}
		}
	}
	return names
}

// inTurns is the order of the sides in a round. It changes from one to the next, so
// that none always has the machine that the other has left.
func inTurns(round int, before, after *side) []*side {
	if round%2 == 0 {
		return []*side{after, before}
	}
	return []*side{before, after}
}

// run runs the benchmarks of a package once and returns what they print: nothing if
// the side does not have the package.
func (s *side) run(ctx context.Context, o options, name string) (string, error) {
	binary := s.binaries[name]
	if binary == "" {
		return "", nil
	}
	text, err := output(ctx, filepath.Join(s.dir, name), binary, "-test.run=^$", "-test.bench="+o.bench,
		"-test.benchtime="+o.benchtime, "-test.benchmem", "-test.count=1", "-test.timeout=30m")
	if err != nil {
		return "", fmt.Errorf("benchmarks in %s of %s: %w", name, s.name, err)
	}
	return text + "\n", nil
}
