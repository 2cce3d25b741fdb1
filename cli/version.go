package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// version is set by the linker in release builds.
var version = ""

// Version returns the version of the binary: the one set by the linker, else
// that of the module as the Go tool recorded it.
func Version() string {
	return currentBuild().Version
}

// build says what a binary was made from. Its JSON is what version -o json prints.
type build struct {
	// Version is a tag like v0.1.0, git's description of a commit, or (devel).
	Version string `json:"version"`
	// Commit, CommitTime (RFC 3339) and TreeState (clean or modified) are empty
	// when the source was not a git checkout.
	Commit     string `json:"commit,omitempty"`
	CommitTime string `json:"commitTime,omitempty"`
	TreeState  string `json:"treeState,omitempty"`
	// GoVersion is the version of the compiler.
	GoVersion string `json:"goVersion"`
	// Platform is operating system and architecture, for example linux/amd64.
	Platform string `json:"platform"`
}

// currentBuild describes the running binary.
func currentBuild() build {
	info, _ := debug.ReadBuildInfo()
	return describeBuild(version, info)
}

// describeBuild puts together what the linker was given and what the Go tool
// recorded; info may be nil.
func describeBuild(linked string, info *debug.BuildInfo) build {
	b := build{Version: linked, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		info = &debug.BuildInfo{}
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.time":
			b.CommitTime = setting.Value
		case "vcs.modified":
			b.TreeState = "clean"
			if setting.Value == "true" {
				b.TreeState = "modified"
			}
		}
	}
	return b
}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and what it was built from",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return currentBuild().write(cmd.OutOrStdout(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml instead of text")
	formats := cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", formats); err != nil {
		panic(err) // only without the flag above
	}
	return cmd
}

// write prints b as text (format ""), json or yaml.
func (b build) write(out io.Writer, format string) error {
	var encoded []byte
	var err error
	switch format {
	case "":
		return b.writeText(out)
	case "json":
		encoded, err = json.MarshalIndent(b, "", "  ")
		encoded = append(encoded, '\n')
	case "yaml":
		encoded, err = yaml.Marshal(b)
	default:
		return fmt.Errorf("--output: %q is not one of json, yaml", format)
	}
	if err != nil {
		return fmt.Errorf("encoding the version: %w", err)
	}
	_, err = out.Write(encoded)
	return err
}

func (b build) writeText(out io.Writer) error {
	commit := b.Commit
	if commit == "" {
		commit = "unknown"
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "version:\t%s\ncommit:\t%s\n", b.Version, commit)
	if b.CommitTime != "" {
		fmt.Fprintf(table, "date:\t%s\n", b.CommitTime)
	}
	if b.TreeState != "" {
		fmt.Fprintf(table, "tree:\t%s\n", b.TreeState)
	}
	fmt.Fprintf(table, "go:\t%s\nplatform:\t%s\n", b.GoVersion, b.Platform)
	return table.Flush()
}
