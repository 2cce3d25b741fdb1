package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// newRepository makes a git repository with one commit named first.
func newRepository(t *testing.T, files map[string]string) string {
	t.Helper()
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "tester", "GIT_AUTHOR_EMAIL": "tester@example.com",
		"GIT_COMMITTER_NAME": "tester", "GIT_COMMITTER_EMAIL": "tester@example.com",
	} {
		t.Setenv(name, value)
	}
	root := t.TempDir()
	write(t, root, files)
	mustGit(t, root, "init", "--quiet")
	mustGit(t, root, "add", ".")
	mustGit(t, root, "commit", "--quiet", "-m", "first")
	return root
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func mustGit(t *testing.T, root string, args ...string) string {
	t.Helper()
	text, err := git(t.Context(), root, args...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// testOptions run each benchmark once per round. benchstat is that of this
// repository.
func testOptions(root string, rounds int, progress io.Writer) options {
	tools := filepath.Join("..", "..", "tools")
	return options{
		bench: ".", packages: regexp.MustCompile(""), benchtime: "1x", rounds: rounds,
		root: root, tools: tools, progress: progress,
	}
}

// temporaryFolder is what the program makes temporary folders in.
func temporaryFolder(t *testing.T) string {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", folder)
	return folder
}

// checkRemoved checks that nothing is left of a checkout.
func checkRemoved(t *testing.T, root, temporary string) {
	t.Helper()
	if list := mustGit(t, root, "worktree", "list", "--porcelain"); strings.Count(list, "worktree ") != 1 {
		t.Errorf("git worktree list:\n%s", list)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// benchmarksIn returns the first line of a report and the benchmarks it has results
// of.
func benchmarksIn(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	title, results, _ := strings.Cut(string(text), "\n")
	names := []string{title}
	for line := range strings.Lines(results) {
		if name, isResult := strings.CutPrefix(line, "Benchmark"); isResult && strings.Contains(line, " ns/op") {
			name, _, _ = strings.Cut(strings.Fields(name)[0], "-")
			names = append(names, name)
		}
	}
	return names
}

// sortedNames compares names in any order.
var sortedNames = cmp.Options{cmpopts.SortSlices(strings.Compare)}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
