package schedulerconfig

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
)

// Text is YAML to paste into gpu-binpacker's configuration, with comments. source names the
// file that was translated.
func (t *Translation) Text(source string) (string, error) {
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
	for _, remark := range t.remarks() {
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

// remarks say which pods the section is about.
func (t *Translation) remarks() []string {
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
