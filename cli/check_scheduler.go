package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/cli/schedulerconfig"
	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// schedulerConfigFlag is the flag of check that reads kube-scheduler's file.
const schedulerConfigFlag = "scheduler-config"

// describeScheduler prints what to set for the scheduler of a file.
func (f *checkFlags) describeScheduler(cmd *cobra.Command) error {
	cfg, err := config.Load(f.configuration.path, nil)
	if err != nil {
		return err
	}
	name := f.schedulerConfig
	var data []byte
	if name == "-" {
		name = "standard input"
		data, err = io.ReadAll(cmd.InOrStdin())
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return fmt.Errorf("--%s: %w", schedulerConfigFlag, err)
	}
	t, err := schedulerconfig.Translate(data, cfg.Resources)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if t.Where != "" {
		name += ", " + t.Where
	}
	text, err := schedulerText(name, &t)
	if err != nil {
		return err
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text)
	return err
}

// schedulerText is YAML to paste, with comments.
func schedulerText(source string, t *schedulerconfig.Translation) (string, error) {
	section, err := t.YAML()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	source = fmt.Sprintf("profile %s of %s", t.SchedulerName, terminal.Printable(source))
	if len(section) == 0 {
		comment(&out, "Nothing to set: gpu-binpacker's defaults fit the "+source+".")
	} else {
		comment(&out, "For gpu-binpacker's configuration, from the "+source+". It replaces what stands under the same names there; what is left out has its default.")
		out.Write(section)
	}
	for _, remark := range schedulerRemarks(t) {
		out.WriteString("#\n")
		comment(&out, remark)
	}
	if len(t.Notes) > 0 {
		out.WriteString("#\n")
		comment(&out, "What to know about this profile:")
		for _, note := range t.Notes {
			bullet(&out, note)
		}
	}
	return out.String(), nil
}

// schedulerRemarks say which pods the section is about.
func schedulerRemarks(t *schedulerconfig.Translation) []string {
	var out []string
	if len(t.SchedulerNames) > 1 {
		out = append(out, fmt.Sprintf("The profiles %s are alike, so pods of all of them are steered.", strings.Join(t.SchedulerNames, ", ")))
	}
	if !slices.Contains(t.SchedulerNames, corev1.DefaultSchedulerName) {
		out = append(out, "There is no profile "+corev1.DefaultSchedulerName+" in it: pods that name no scheduler are placed by another one, and left alone with these schedulerNames.")
	}
	for _, o := range t.Others {
		out = append(out, fmt.Sprintf("Pods with schedulerName %s are left alone: one configuration describes one profile, and that one differs in %s.",
			o.SchedulerName, strings.Join(o.Differences, ", ")))
	}
	return out
}

// comment writes a text as lines of comments.
func comment(out *strings.Builder, text string) {
	for _, line := range terminal.Wrap(terminal.Printable(text), terminal.Columns-len("# ")) {
		out.WriteString("# " + line + "\n")
	}
}

// bullet writes a text as an item of a list in comments.
func bullet(out *strings.Builder, text string) {
	sign := "# - "
	for _, line := range terminal.Wrap(terminal.Printable(text), terminal.Columns-len(sign)) {
		out.WriteString(sign + line + "\n")
		sign = "#   "
	}
}
