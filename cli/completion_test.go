package cli

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Each script must be one that its shell can read and call back from.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "fish", "powershell", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			script, err := execute(t, "completion", shell)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"gpu-binpacker", "__complete"} {
				if !strings.Contains(script, want) {
					t.Errorf("the script does not contain %s", want)
				}
			}
			// Of these shells only bash is likely to be there.
			if shell != "bash" {
				return
			}
			bash, err := exec.LookPath("bash")
			if err != nil {
				t.Skip("no bash")
			}
			cmd := exec.CommandContext(t.Context(), bash, "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("bash does not accept the script: %v\n%s", err, out)
			}
		})
	}
}

// What the scripts ask for when Tab is pressed.
func TestCompletions(t *testing.T) {
	for name, tc := range map[string]struct {
		words []string
		want  []string
	}{
		"commands": {[]string{""}, []string{"completion", "serve", "version"}},
		"prefix":   {[]string{"ver"}, []string{"version"}},
		"values":   {[]string{"version", "--output", ""}, []string{"json", "yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t, append([]string{"__complete"}, tc.words...)...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(out) {
				word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
				got = append(got, word)
			}
			for _, want := range tc.want {
				if !slices.Contains(got, want) {
					t.Errorf("%q is not among %q", want, got)
				}
			}
		})
	}
}
