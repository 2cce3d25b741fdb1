package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// options are the flags, and what tests set.
type options struct {
	base      string
	bench     string
	packages  *regexp.Regexp
	benchtime string
	rounds    int

	// root is the repository that is compared, tools the module that pins benchstat.
	root, tools string
	progress    io.Writer
}

// stopSignals end the run; the checkout is removed first. SIGHUP is a terminal that
// is closed.
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

func main() {
	o := options{progress: os.Stderr, packages: regexp.MustCompile("")}
	flag.StringVar(&o.base, "base", "", "the commit to compare with; default HEAD~1, or HEAD if the working tree has changes")
	flag.StringVar(&o.bench, "bench", ".", "which benchmarks, as go test -bench")
	flag.Func("packages", "only packages whose folder matches this regular expression, for example '^scoring$'", func(text string) (err error) {
		o.packages, err = regexp.Compile(text)
		return err
	})
	flag.StringVar(&o.benchtime, "benchtime", "1s", "how long or how often each benchmark runs in a round, as go test -benchtime")
	flag.IntVar(&o.rounds, "rounds", 6, "how often each benchmark runs in each tree; benchstat wants 6 at least")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals...)
	err := run(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, o options) error {
	if o.rounds < 1 {
		return fmt.Errorf("-rounds: %d is less than 1", o.rounds)
	}
	if _, err := regexp.Compile(o.bench); err != nil {
		return fmt.Errorf("-bench: %w", err)
	}
	if o.root == "" {
		root, err := programs.RepositoryRoot()
		if err != nil {
			return err
		}
		o.root, o.tools = root, filepath.Join(root, "test", "tools")
	}
	base, err := findBase(ctx, o.root, o.base)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.progress, "comparing the working tree with %s %s\n", base.short, base.subject)
	before := &side{name: base.short, title: "commit " + base.short + " " + base.subject, report: report(o, "bench-old.txt")}
	after := &side{name: "working tree", title: "the working tree", dir: o.root, report: report(o, "bench-new.txt")}
	if err := measure(ctx, o, base, before, after); err != nil {
		return err
	}
	return benchstat(ctx, out, o, before, after)
}

func report(o options, name string) string {
	return filepath.Join(o.root, "bin", "reports", name)
}

// measure fills the reports of both sides. When it returns, the checkout of base is
// gone.
func measure(ctx context.Context, o options, base commit, before, after *side) (err error) {
	// Git knows a worktree by its path without symbolic links.
	parent, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return fmt.Errorf("finding the folder for temporary files: %w", err)
	}
	temporary, err := os.MkdirTemp(parent, "gpu-binpacker-compare-")
	if err != nil {
		return fmt.Errorf("making a folder for the checkout of %s: %w", base.short, err)
	}
	before.dir = filepath.Join(temporary, "base")
	defer func() { err = errors.Join(err, discard(ctx, o.root, temporary, before.dir)) }()
	if err := checkout(ctx, o.root, base, before.dir); err != nil {
		return err
	}
	if err := before.build(ctx, o, filepath.Join(temporary, "old")); err != nil {
		return err
	}
	if err := after.build(ctx, o, filepath.Join(temporary, "new")); err != nil {
		return err
	}
	return runRounds(ctx, o, before, after)
}

// benchstat prints the comparison of the reports.
func benchstat(ctx context.Context, out io.Writer, o options, before, after *side) error {
	table, err := output(ctx, o.tools, "go", "tool", "benchstat", before.name+"="+before.report, after.name+"="+after.report)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.progress, "saved: %s\nsaved: %s\n", before.report, after.report)
	_, err = fmt.Fprintln(out, table)
	return err
}
