package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command line of the process and returns its exit code. The
// first SIGINT or SIGTERM stops the command in order, the second at once.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Back to the default action once the first signal came.
	context.AfterFunc(ctx, stop)
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "gpu-binpacker: %v\n", err)
		return 1
	}
	return 0
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "gpu-binpacker",
		Short: "Packs GPU pods with the default scheduler",
		Long: `gpu-binpacker is a mutating admission webhook. It ranks the GPU nodes for each
new GPU pod of an opted-in namespace and adds preferred node-affinity weights
that make the default scheduler pack it.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newServe(), newMatchConditions(), newVersion())
	return root
}
