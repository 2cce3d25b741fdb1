package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// side is one of the two trees.
type side struct {
	// name is how columns and messages call it, title the first line of its report.
	name, title string
	dir         string
	report      string
	// binaries are folder of the package, relative to dir -> its test binary.
	binaries map[string]string
}

// build builds the test binaries of the packages with benchmarks into a folder.
func (s *side) build(ctx context.Context, o options, folder string) error {
	packages, err := benchmarkPackages(ctx, s.dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("building the benchmarks: %w", err)
	}
	s.binaries = map[string]string{}
	for i, name := range packages {
		if !o.packages.MatchString(filepath.ToSlash(name)) {
			continue
		}
		fmt.Fprintf(o.progress, "building %s of %s\n", name, s.name)
		binary := filepath.Join(folder, fmt.Sprintf("%d.test", i))
		if _, err := output(ctx, filepath.Join(s.dir, name), "go", "test", "-c", "-o", binary, "."); err != nil {
			return fmt.Errorf("building the benchmarks in %s of %s: %w", name, s.name, err)
		}
		// None is built if all test files are for other platforms.
		if _, err := os.Stat(binary); err == nil {
			s.binaries[name] = binary
		}
	}
	return nil
}

// benchmarkPackages returns the folders of the packages with benchmarks in a tree,
// of all its modules, sorted. Files that git ignores do not count; new ones do.
func benchmarkPackages(ctx context.Context, tree string) ([]string, error) {
	files, err := git(ctx, tree, "grep", "--untracked", "-z", "--name-only", "--extended-regexp", "-e", "^func Benchmark", "--", "*_test.go")
	if err != nil && !isExit(err, 1) { // 1: nothing found
		return nil, fmt.Errorf("looking for benchmarks: %w", err)
	}
	var packages []string
	for file := range strings.SplitSeq(files, "\x00") {
		if folder := path.Dir(file); file != "" && !ignoredByGo(file) {
			packages = append(packages, filepath.FromSlash(folder))
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages), nil
}

// ignoredByGo reports whether the go command takes a file for no part of a package.
func ignoredByGo(file string) bool {
	return slices.ContainsFunc(strings.Split(file, "/"), func(element string) bool {
		return element == "testdata" || element == "vendor" || strings.HasPrefix(element, ".") || strings.HasPrefix(element, "_")
	})
}
