package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	logf "github.com/cert-manager/cert-manager/pkg/logs"
)

// sourceDigest is set by the linker. It lets the test bed see that a built
// binary is of this source, see test/programs/binaries.go.
var sourceDigest string

func main() {
	logf.InitLogs()
	err := run(os.Args[1:])
	logf.FlushLogs()
	if err != nil {
		fmt.Fprintln(os.Stderr, "certmanager:", err)
		os.Exit(1)
	}
}

// run starts the controllers and cainjector and returns when a signal or an
// error has stopped both.
func run(args []string) error {
	flags := flag.NewFlagSet("certmanager", flag.ContinueOnError)
	klog.InitFlags(flags)
	kubeconfig := flags.String("kubeconfig", "", "path of the kubeconfig file")
	healthAddress := flags.String("health-probe-bind-address", "127.0.0.1:0", "address that serves /healthz and /readyz")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *kubeconfig == "" {
		return errors.New("--kubeconfig is required")
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logf.Log)
	logf.Log.Info("starting", "sourceDigest", sourceDigest)
	ctx = logf.NewContext(ctx, logf.Log)

	controllers, err := newControllers(ctx, *kubeconfig)
	if err != nil {
		return fmt.Errorf("building the certificate controllers: %w", err)
	}
	manager, err := newCAInjector(ctx, *kubeconfig, *healthAddress, controllers.synced)
	if err != nil {
		return fmt.Errorf("building cainjector: %w", err)
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return controllers.run(ctx) })
	group.Go(func() error { return manager.Start(ctx) })
	return group.Wait()
}
