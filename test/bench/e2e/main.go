package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// options are the flags.
type options struct {
	nodes, pods, runs int
	timeout           time.Duration
	report            string
	configuration     string
	owner             string
}

func main() {
	var o options
	flag.IntVar(&o.nodes, "nodes", 1000, "nodes of 8 GPUs")
	flag.IntVar(&o.pods, "pods", 1000, "pods of one GPU per run")
	flag.IntVar(&o.runs, "runs", 5, "how often each system is measured; the medians count")
	flag.DurationVar(&o.timeout, "timeout", time.Hour, "end after that time")
	flag.StringVar(&o.report, "report", "", "the file to write; default bin/reports/e2e.json of the repository")
	flag.StringVar(&o.owner, "owner", replicaSet, "replicaset: pods of ReplicaSets, to which kube-scheduler applies its default spreading; bare: pods without an owner, to which it applies none")
	flag.StringVar(&o.configuration, "configuration", "", "a configuration file of gpu-binpacker; default the shipped one")
	flag.Parse()
	log.SetLogger(klog.Logger{}) // controller-runtime has nothing to say here
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	err := bench(ctx, o)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1) //nolint:gocritic // the signal handler needs no cleaning up
	}
}

// bench measures all systems in turns.
func bench(ctx context.Context, o options) (err error) {
	if o.nodes < 1 || o.pods < 1 || o.runs < 1 || o.pods > o.nodes*gpusPerNode {
		return fmt.Errorf("-nodes, -pods and -runs are at least 1, and -pods at most %d per node", gpusPerNode)
	}
	if o.owner != replicaSet && o.owner != bare {
		return fmt.Errorf("-owner is %s or %s, not %q", replicaSet, bare, o.owner)
	}
	b, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	measured := map[string][]figures{}
	for run := range o.runs {
		for i := range systems {
			system := systems[(run+i)%len(systems)] // each is first in its turn
			f, err := b.measure(ctx, o, system, fmt.Sprintf("%s-%d", system, run))
			if err != nil {
				return fmt.Errorf("run %d of %s: %w", run+1, system, err)
			}
			fmt.Fprintf(os.Stderr, "run %d of %d, %s: %.0f pods created/s, %.0f bound/s, %d steered\n",
				run+1, o.runs, system, f.created, f.scheduled, f.steered)
			measured[system] = append(measured[system], f)
		}
	}
	results := summarize(o, measured)
	if err := save(o.report, results); err != nil {
		return err
	}
	return writeTable(os.Stdout, results)
}
