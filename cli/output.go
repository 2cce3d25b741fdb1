package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// choice is a flag with a fixed set of values.
type choice[T ~string] struct {
	value   T
	allowed []T
}

func (c *choice[T]) String() string { return string(c.value) }

func (c *choice[T]) Type() string { return "string" }

// Set refuses a value that is not one of the set.
func (c *choice[T]) Set(text string) error {
	if !slices.Contains(c.allowed, T(text)) {
		return fmt.Errorf("must be %s", c.words())
	}
	c.value = T(text)
	return nil
}

// bind adds the flag to a command, with its values for the shell's completion.
func (c *choice[T]) bind(cmd *cobra.Command, name, shorthand, usage string) {
	cmd.Flags().VarP(c, name, shorthand, usage)
	complete := cobra.FixedCompletions(c.texts(), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // there is no such flag, or it has completions: a bug here
	}
}

func (c *choice[T]) texts() []string {
	texts := make([]string, len(c.allowed))
	for i, a := range c.allowed {
		texts[i] = string(a)
	}
	return texts
}

// words lists the values: a, b or c.
func (c *choice[T]) words() string {
	words := c.texts()
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// output is the form of what a command prints.
type output string

const (
	outputTable output = "table"
	outputWide  output = "wide"
	outputJSON  output = "json"
	outputYAML  output = "yaml"
)

// writeObject prints a value for machines.
func writeObject(out io.Writer, as output, object any) error {
	var data []byte
	var err error
	if as == outputYAML {
		data, err = yaml.Marshal(object)
	} else {
		data, err = json.MarshalIndent(object, "", "  ")
		data = append(data, '\n')
	}
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	_, err = out.Write(data)
	return err
}
