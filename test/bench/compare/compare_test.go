package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// benchmarks is a test file whose benchmarks do what is given for each name.
func benchmarks(bodies map[string]string) string {
	text := "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nvar _, _ = os.Getenv, time.Now\n"
	for name, body := range bodies {
		text += "\nfunc Benchmark" + name + "(b *testing.B) {\n\tfor b.Loop() {\n\t\t" + body + "\n\t}\n}\n"
	}
	return text
}

// changedRepository has one commit with the packages common and gone, and changes on
// it that are not committed: gone is gone, fresh is new in a module of its own, and
// so is one of the benchmarks of common.
func changedRepository(t *testing.T) string {
	t.Helper()
	root := newRepository(t, map[string]string{
		".gitignore":          "/bin/\n",
		"go.mod":              "module example.com/p\n\ngo 1.26.0\n",
		"common/p_test.go":    benchmarks(map[string]string{"Both": "", "Old": ""}),
		"gone/p_test.go":      benchmarks(map[string]string{"Gone": ""}),
		"testdata/p_test.go":  benchmarks(map[string]string{"NoPackage": "no Go"}),
		"without/p_test.go":   "package p\n",
		"other/other_test.go": "//go:build neverbuilt\n\n" + benchmarks(map[string]string{"OtherPlatform": ""}),
		"other/other.go":      "package p\n",
	})
	write(t, root, map[string]string{
		"common/p_test.go":       benchmarks(map[string]string{"Both": "", "New": ""}),
		"nested/go.mod":          "module example.com/p/nested\n\ngo 1.26.0\n",
		"nested/fresh/p_test.go": benchmarks(map[string]string{"Fresh": ""}),
		"bin/p_test.go":          benchmarks(map[string]string{"Ignored": "no Go"}),
	})
	if err := os.RemoveAll(filepath.Join(root, "gone")); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestRun(t *testing.T) {
	root := changedRepository(t)
	temporary := temporaryFolder(t)
	status := mustGit(t, root, "status", "--porcelain")
	t.Setenv("GIT_DIR", filepath.Join(root, "no such folder")) // as in a hook
	var out, progress bytes.Buffer
	if err := run(t.Context(), &out, testOptions(root, 2, &progress)); err != nil {
		t.Fatal(err)
	}
	name := mustGit(t, root, "rev-parse", "--short", "HEAD")
	for file, want := range map[string][]string{
		"bench-old.txt": {"# commit " + name + " first", "Both", "Old", "Gone", "Both", "Old", "Gone"},
		"bench-new.txt": {"# the working tree", "Both", "New", "Fresh", "Both", "New", "Fresh"},
	} {
		if diff := cmp.Diff(want, benchmarksIn(t, filepath.Join(root, "bin", "reports", file)), sortedNames); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	if head := regexp.MustCompile(`│ +` + name + ` +│ +working tree +│`); !head.MatchString(out.String()) {
		t.Errorf("no columns of %s and the working tree:\n%s", name, &out)
	}
	for _, want := range []string{
		"comparing the working tree with " + name + " first\n",
		"round 2 of 2: common\n",
		"working tree has no benchmarks in gone\n",
		name + " has no benchmarks in " + filepath.Join("nested", "fresh") + "\n",
	} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress does not say %q:\n%s", want, &progress)
		}
	}
	checkRemoved(t, root, temporary)
	if got := mustGit(t, root, "status", "--porcelain"); got != status {
		t.Errorf("git status was\n%s\nand is\n%s", status, got)
	}
}

func TestRunFails(t *testing.T) {
	tests := map[string]struct {
		before, after string
		change        func(*options)
		want          string
	}{
		"failing benchmark": {
			before: benchmarks(map[string]string{"Both": ""}),
			after:  benchmarks(map[string]string{"Both": `b.Fatal("wrong answer")`}),
			want:   `(?s)^benchmarks in p of working tree: .*wrong answer`,
		},
		"does not compile": {
			before: benchmarks(map[string]string{"Both": "undefined()"}),
			after:  benchmarks(map[string]string{"Both": ""}),
			want:   `(?s)^building the benchmarks in p of [0-9a-f]+: .*undefined`,
		},
		"no match": {
			before: benchmarks(map[string]string{"Both": ""}),
			after:  benchmarks(map[string]string{"Both": "", "New": ""}),
			change: func(o *options) { o.bench = "Absent" },
			want:   `^-bench, -packages: neither tree has a benchmark "Absent" in a folder ""$`,
		},
		"no package": {
			before: benchmarks(map[string]string{"Both": "undefined()"}),
			after:  benchmarks(map[string]string{"Both": "undefined()", "New": ""}),
			change: func(o *options) { o.packages = regexp.MustCompile("^q$") },
			want:   `^-bench, -packages: neither tree has a benchmark "." in a folder "\^q\$"$`,
		},
		"no regular expression": {change: func(o *options) { o.bench = "(" }, want: `^-bench: .*missing closing`},
		"no rounds":             {change: func(o *options) { o.rounds = 0 }, want: `^-rounds: 0 is less than 1$`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			root := newRepository(t, map[string]string{"go.mod": "module example.com/p\n\ngo 1.26.0\n", "p/p_test.go": tc.before})
			write(t, root, map[string]string{"p/p_test.go": tc.after})
			temporary := temporaryFolder(t)
			o := testOptions(root, 1, io.Discard)
			if tc.change != nil {
				tc.change(&o)
			}
			err := run(t.Context(), io.Discard, o)
			if err == nil || !regexp.MustCompile(tc.want).MatchString(err.Error()) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			checkRemoved(t, root, temporary)
		})
	}
}

// An interrupt ends a benchmark that runs, and the checkout is removed.
func TestRunInterrupted(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	t.Setenv("STARTED", started)
	endless := benchmarks(map[string]string{"Endless": `os.WriteFile(os.Getenv("STARTED"), nil, 0o644); time.Sleep(time.Hour)`})
	root := newRepository(t, map[string]string{"go.mod": "module example.com/p\n\ngo 1.26.0\n", "p_test.go": endless})
	write(t, root, map[string]string{"p_test.go": endless + "// changed\n"})
	temporary := temporaryFolder(t)
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() { ended <- run(ctx, io.Discard, testOptions(root, 1, io.Discard)) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for running := false; !running; {
		select {
		case err := <-ended:
			t.Fatalf("ended before the benchmark ran: %v", err)
		case <-tick.C:
			_, err := os.Stat(started)
			running = err == nil
		}
	}
	if list := mustGit(t, root, "worktree", "list", "--porcelain"); strings.Count(list, "worktree ") != 2 {
		t.Errorf("while it runs:\n%s", list)
	}
	cancel(interrupted)
	if err := <-ended; !errors.Is(err, interrupted) {
		t.Error(err)
	}
	checkRemoved(t, root, temporary)
}

// In each round both sides run one after the other, and the order changes.
func TestInTurns(t *testing.T) {
	before, after := &side{name: "before"}, &side{name: "after"}
	var got []string
	for round := 1; round <= 3; round++ {
		for _, s := range inTurns(round, before, after) {
			got = append(got, s.name)
		}
	}
	if diff := cmp.Diff([]string{"before", "after", "after", "before", "before", "after"}, got); diff != "" {
		t.Error(diff)
	}
}
