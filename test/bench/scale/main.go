package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/fakeapi"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/product"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// gcPercent keeps this process, which holds all objects, small: it makes little
// garbage, and needs no speed.
const gcPercent = 20

// options are the flags.
type options struct {
	nodes          int
	runs           int
	settle, cpu    time.Duration
	changes        float64
	timeout        time.Duration
	attack         time.Duration
	binary, report string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1) //nolint:gocritic // the signal handler needs no cleaning up
	}
}

// command runs the benchmark, or the command that it calls itself by.
func command(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "list" {
		return list(ctx, args[1:])
	}
	if len(args) > 0 && args[0] == "watch" {
		return watch(ctx, args[1:])
	}
	var o options
	set := flag.NewFlagSet("scale", flag.ExitOnError)
	set.IntVar(&o.nodes, "nodes", 5000, fmt.Sprintf("nodes, with %d pods each", cluster.PodsPerNode))
	set.IntVar(&o.runs, "runs", 3, "how often the time to ready is measured; the medians count")
	set.DurationVar(&o.settle, "settle", 150*time.Second, "time before memory is read; Go collects garbage every two minutes at least")
	set.DurationVar(&o.cpu, "cpu", time.Minute, "time of each of the two measurements of CPU")
	set.Float64Var(&o.changes, "changes", 100, "pod changes per second")
	set.DurationVar(&o.timeout, "timeout", time.Hour, "end after that time")
	set.DurationVar(&o.attack, "attack", 0, "attack all bounds at once for that time, and see that the memory limit holds, instead of the measurements")
	set.StringVar(&o.binary, "binary", "", "the gpu-binpacker to run; default: built from the repository")
	set.StringVar(&o.report, "report", "", "the file to write; default bin/reports/scale.json of the repository")
	if err := set.Parse(args); err != nil {
		return err
	}
	if o.nodes < 1 || o.runs < 1 {
		return errors.New("-nodes and -runs must be at least 1")
	}
	debug.SetGCPercent(gcPercent)
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.attack > 0 {
		return withBed(ctx, o, func(b *bed) error { return attackOnly(ctx, b) })
	}
	var r result
	if err := withBed(ctx, o, func(b *bed) (err error) { r, err = bench(ctx, b); return err }); err != nil {
		return err
	}
	return errors.Join(writeTable(os.Stdout, r), save(o.report, r))
}

// withBed does something with what is measured with.
func withBed(ctx context.Context, o options, do func(*bed) error) (err error) {
	if o.binary, err = product.Build(ctx, os.Stderr, o.binary); err != nil {
		return err
	}
	root, err := programs.RepositoryRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gpu-binpacker-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	api, err := fakeapi.Start(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Stop()) }()
	realistic, err := cluster.NewRealistic(root)
	if err != nil {
		return err
	}
	return do(&bed{options: o, dir: dir, api: api, contents: contents{api: api, objects: realistic, nodes: o.nodes}})
}

// bench makes all measurements.
func bench(ctx context.Context, b *bed) (r result, err error) {
	r = result{Nodes: b.options.nodes, Pods: b.options.nodes * cluster.PodsPerNode}
	if err := b.measureMemory(ctx, &r); err != nil {
		return r, err
	}
	p, err := b.measureReady(ctx, &r)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Kill()) }()
	return r, b.measureRunning(ctx, p, &r)
}

// progress says what happens now.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
