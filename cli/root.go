package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
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
	root := newRoot()
	nameAfter(root, os.Args[0])
	if err := root.ExecuteContext(ctx); err != nil {
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
	root.AddCommand(newExplain(), newNodes())
	root.AddCommand(newCheck())
	root.AddCommand(newReport())
	root.AddCommand(newServe(), newMatchConditions(), newVersion())
	return root
}

// pluginName is the file name under which kubectl finds the program as a plugin:
// kubectl gpu-binpacker.
const pluginName = "kubectl-gpu_binpacker"

// nameAfter makes the usage texts say how the program was started: by itself, or
// as a plugin of kubectl. program is the first word of the command line.
func nameAfter(root *cobra.Command, program string) {
	if strings.TrimSuffix(filepath.Base(program), ".exe") != pluginName {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl gpu-binpacker"}
	commandLine := strings.NewReplacer("  gpu-binpacker ", "  kubectl gpu-binpacker ", "| gpu-binpacker ", "| kubectl gpu-binpacker ")
	for _, cmd := range root.Commands() {
		cmd.Example, cmd.Long = commandLine.Replace(cmd.Example), commandLine.Replace(cmd.Long)
	}
}
