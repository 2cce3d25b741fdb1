// Command playground starts a real control plane on this machine, installs gpu-binpacker
// on it as a user would, prints what to try, and keeps it until it is interrupted.
//
// Files in reading order:
//
//   - main.go: START HERE, the run
//   - shell.go: what a shell needs, and the commands to try
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
)

// options are the flags.
type options struct{ nodes, gpus, replicas int }

func main() {
	var o options
	flag.IntVar(&o.nodes, "nodes", 4, "how many GPU nodes there are, 1 to 1000")
	flag.IntVar(&o.gpus, "gpus", 8, "how many GPUs each has, 1 to 64")
	flag.IntVar(&o.replicas, "replicas", 2, "how many replicas of gpu-binpacker run, 1 to 5")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

// check returns what is wrong with the flags. The limits are what two cores carry.
func (o options) check() error {
	for _, f := range []struct {
		name             string
		value, min, most int
	}{{"nodes", o.nodes, 1, 1000}, {"gpus", o.gpus, 1, 64}, {"replicas", o.replicas, 1, 5}} {
		if f.value < f.min || f.value > f.most {
			return fmt.Errorf("-%s: %d is not between %d and %d", f.name, f.value, f.min, f.most)
		}
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see -h", flag.Arg(0))
	}
	return nil
}

// run starts everything, shows what to do, and cleans up when ctx ends.
func (o options) run(ctx context.Context, out io.Writer) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true, Kwok: true, CertManager: true, Log: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	installed, err := installation.Install(ctx, cp, installation.Options{Replicas: o.replicas, Log: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, installed.Stop()) }()
	if err := cp.CreateNodes(ctx, controlplane.Nodes("gpu", o.nodes, o.allocatable())...); err != nil {
		return err
	}
	if err := installed.WaitSteering(ctx); err != nil {
		return err
	}
	shell, err := newShell(ctx, cp, out)
	if err != nil {
		return err
	}
	o.show(out, shell)
	<-ctx.Done()
	fmt.Fprintln(out, "\nending")
	return nil
}

// allocatable is what a node offers, in the proportions of common machines with 8 GPUs.
func (o options) allocatable() map[string]string {
	return map[string]string{
		"cpu": fmt.Sprint(12 * o.gpus), "memory": fmt.Sprintf("%dGi", 144*o.gpus), "nvidia.com/gpu": fmt.Sprint(o.gpus),
	}
}
