package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

// stateFlags say that a command looks at a cluster that is not there: one in a file, or
// the one that is built in.
type stateFlags struct {
	// path is a state file; "-" is standard input.
	path string
	// example: the built-in cluster.
	example bool
}

// bind adds the flags to a command that has those of a real cluster.
func (f *stateFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.path, "state", "", `state file to read instead of a cluster, as report --save-state writes it; "-" for standard input`)
	flags.BoolVar(&f.example, "example", false, "look at the cluster that is built in, of 303 made-up nodes, instead of a real one")
	cmd.MarkFlagsMutuallyExclusive("state", "example")
	for _, flag := range []string{clientcmd.RecommendedConfigPathFlag, clientcmd.FlagContext, clientcmd.FlagImpersonate, clientcmd.FlagImpersonateGroup} {
		cmd.MarkFlagsMutuallyExclusive("state", flag)
		cmd.MarkFlagsMutuallyExclusive("example", flag)
	}
}

// given tells whether no real cluster is to be read.
func (f *stateFlags) given() bool { return f.example || f.path != "" }

// load returns the cluster.
func (f *stateFlags) load(in io.Reader) (*state.State, error) {
	if f.example {
		return state.Example(), nil
	}
	s, err := state.Load(f.path, in)
	if err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	return s, nil
}

// source names where the cluster is from.
func (f *stateFlags) source() string {
	if f.example {
		return "the built-in example"
	}
	return "state file " + f.path
}
