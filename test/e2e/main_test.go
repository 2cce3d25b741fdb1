// Package e2e tests the installed product on a real control plane: real etcd,
// API server, scheduler, controller manager and cert-manager, the shipped
// manifests and the real binary.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// cluster is shared by all tests of the package, which therefore do not run in
// parallel: the scenarios need it without nodes and pods of others.
var cluster *scenario.Cluster

// unsteered are the pods that baseline_test.go compares with, created before the
// product was installed.
var unsteered baseline

// busy is how many goroutines compute for nothing while the tests run: other work on
// the machine.
var busy = flag.Int("busy", 0, "keep so many cores busy with other work")

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

// run starts the cluster, runs the tests and checks what must hold for all of
// them: no pod was ever refused because of the webhook.
func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	cp, err := controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true, Kwok: true, CertManager: true, Log: os.Stdout,
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if code != 0 {
			cp.KeepDir()
		}
		err = errors.Join(err, cp.Stop())
	}()
	if unsteered, err = createBaseline(ctx, cp); err != nil {
		return 1, err
	}
	installed, err := installation.Install(ctx, cp, installation.Options{Log: os.Stdout, Args: []string{"--log-level=Debug"}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, installed.Stop()) }()
	cluster = &scenario.Cluster{ControlPlane: cp, Installed: installed}
	stop := keepBusy(*busy)
	code = m.Run()
	stop()
	refused, err := installed.Rejections(ctx)
	if err != nil {
		return 1, err
	}
	opened, err := installed.FailOpens(ctx)
	if err != nil {
		return 1, err
	}
	fmt.Printf("pods refused because of the webhook: %d; webhook calls that failed, and were ignored: %d\n", refused, opened)
	if refused > 0 {
		return 1, fmt.Errorf("%d pods were refused because of the webhook", refused)
	}
	return code, nil
}

// keepBusy keeps cores busy until the returned function.
func keepBusy(cores int) (stop func()) {
	var ended atomic.Bool
	var group sync.WaitGroup
	for range cores {
		group.Go(func() {
			for !ended.Load() {
			}
		})
	}
	return func() {
		ended.Store(true)
		group.Wait()
	}
}
