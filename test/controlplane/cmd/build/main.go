// Command build builds the programs of the test bed into bin/ and says what it
// does, so that a test run does not seem to hang while it builds them:
//
//	cd test && go run ./controlplane/cmd/build
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	_, err := controlplane.Build(ctx, os.Stderr)
	return err
}
