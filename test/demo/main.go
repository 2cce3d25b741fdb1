// Command demo builds and starts a real control plane on this machine, installs
// gpu-binpacker on it as a user would, and shows where the stock kube-scheduler
// puts GPU pods without and with it.
//
// Files in reading order:
//
//   - main.go: START HERE, the run
//   - show.go: what each scenario shows
//   - terminal.go: nodes as rows of GPUs in the terminal
//   - report.go, page.go, page.html, picture.go: bin/reports/demo.json, demo.html
//     and demo.svg
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// demoTimeout ends a demo that hangs; building may take most of it.
const demoTimeout = 45 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1) //nolint:gocritic // the signal handler needs no cleaning up
	}
}

// run starts the cluster, plays the scenarios and writes the reports. It cleans
// up however it ends.
func run(ctx context.Context) (err error) {
	cp, err := controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true, Kwok: true, CertManager: true, Log: os.Stdout,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	installed, err := installation.Install(ctx, cp, installation.Options{Log: os.Stdout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, installed.Stop()) }()
	shown, err := show(ctx, &scenario.Cluster{ControlPlane: cp, Installed: installed}, newTerminal(os.Stdout))
	if err != nil {
		return err
	}
	if shown.Denied, err = installed.Rejections(ctx); err != nil {
		return err
	}
	if shown.FailedOpen, err = installed.FailOpens(ctx); err != nil {
		return err
	}
	return finish(shown)
}

// finish writes the reports, prints the last line and fails if the packing is not
// the expected one.
func finish(r report) error {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "bin", "reports")
	if err := r.write(dir); err != nil {
		return err
	}
	fmt.Printf("\nwrote %s and %s\n", filepath.Join("bin", "reports", pageFile), filepath.Join("bin", "reports", reportFile))
	burst := r.burst()
	fmt.Printf("demo: without webhook %d nodes, with webhook %d nodes, ideal %d\n",
		burst.Without.NodesUsed, burst.With.NodesUsed, burst.Ideal)
	return r.check()
}
