package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/product"
)

// options are the flags.
type options struct {
	nodes, shapes string
	runs          int
	timeout       time.Duration
	binary        string
	// against is another build of gpu-binpacker, measured in turns with binary.
	against string
	report  string
	load    loadOptions
}

func main() {
	ctrl.SetLogger(logr.Discard()) // the servers' library has nothing to say here
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "admission:", err)
		os.Exit(1) //nolint:gocritic // the signal handler needs no cleaning up
	}
}

// command runs one of the commands that the benchmark calls itself by, or the
// benchmark.
func command(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "serve":
			return serve(ctx, args[1:])
		case "load":
			return load(ctx, args[1:])
		}
	}
	var o options
	set := flag.NewFlagSet("admission", flag.ExitOnError)
	set.StringVar(&o.nodes, "nodes", "100,1000,5000,15000", "sizes of the clusters, comma-separated")
	set.StringVar(&o.shapes, "shapes", "", "comma-separated: "+strings.Join(shapeNames(), ", ")+"; default all")
	set.IntVar(&o.runs, "runs", 5, "how often each system is measured; the medians count")
	set.DurationVar(&o.timeout, "timeout", 4*time.Hour, "end after that time")
	set.StringVar(&o.binary, "binary", "", "the gpu-binpacker to run; default: built from the repository")
	set.StringVar(&o.against, "against", "", "another build of gpu-binpacker to measure in turns with it, instead of naive; prints the ratios of each pair of runs")
	set.StringVar(&o.report, "report", "", "the file to write; default bin/reports/admission.json of the repository")
	o.load.bind(set)
	if err := set.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return bench(ctx, o)
}

func shapeNames() []string {
	var names []string
	for i := range cluster.Shapes {
		names = append(names, cluster.Shapes[i].Name)
	}
	return names
}

// bench measures all clusters that the flags name.
func bench(ctx context.Context, o options) error {
	if o.shapes == "" {
		o.shapes = strings.Join(shapeNames(), ",")
	}
	var err error
	if o.binary, err = product.Build(ctx, os.Stderr, o.binary); err != nil {
		return err
	}
	var results []result
	for _, name := range strings.Split(o.shapes, ",") {
		shape := cluster.Find(name)
		if shape == nil {
			return fmt.Errorf("-shapes: there is no %q, only %s", name, strings.Join(shapeNames(), ", "))
		}
		for _, text := range strings.Split(o.nodes, ",") {
			nodes, err := strconv.Atoi(text)
			if err != nil || nodes < 1 {
				return fmt.Errorf("-nodes: %q is no number of nodes", text)
			}
			if nodes < shape.Least {
				continue
			}
			some, err := measureCluster(ctx, o, shape, nodes)
			if err != nil {
				return fmt.Errorf("%s with %d nodes: %w", name, nodes, err)
			}
			results = append(results, some...)
			// After each cluster: a long run that is interrupted has shown something.
			if err := save(o.report, results); err != nil {
				return err
			}
		}
	}
	return writeTable(os.Stdout, results)
}

// measureCluster measures all systems on one cluster, in turns.
func measureCluster(ctx context.Context, o options, shape *cluster.Shape, nodes int) (results []result, err error) {
	fmt.Fprintf(os.Stderr, "%s, %d nodes: starting the servers\n", shape.Name, nodes)
	dir, err := os.MkdirTemp("", "gpu-binpacker-admission-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	systems, stop, err := startSystems(ctx, map[string]string{ours: o.binary, against: o.against}, dir, shape, nodes)
	if err != nil {
		return nil, err
	}
	defer stop()
	runs := map[string][]loadResult{}
	for run := range o.runs {
		for _, s := range systems {
			r, err := s.load(ctx, o.load, shape, nodes)
			if err != nil {
				return nil, fmt.Errorf("load on %s: %w", s.name, err)
			}
			fmt.Fprintf(os.Stderr, "%s, %d nodes, run %d of %d, %s: p50 %.0f µs, p99 %.0f µs, %.0f requests/s, %.0f µs of CPU each\n",
				shape.Name, nodes, run+1, o.runs, s.name, r.P50Micros, r.P99Micros, r.RequestsPerSecond, r.CPUMicrosPerRequest)
			runs[s.name] = append(runs[s.name], r)
		}
	}
	for _, s := range systems {
		results = append(results, summarize(runs[s.name], shape, nodes, s.name))
	}
	if o.against != "" {
		writePairs(os.Stderr, runs[ours], runs[against])
	}
	return results, nil
}
