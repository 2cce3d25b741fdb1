package readme

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// exported finds what the playground tells a shell.
var exported = regexp.MustCompile(`export KUBECONFIG=(\S+) PATH=([^:\s]+):`)

// What "See it work" in the README shows works in the playground.
func TestPlayground(t *testing.T) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	environment := startPlayground(t, root)
	pod, ran := "", 0
	for _, c := range shown(string(readme)) {
		if c.section != "See it work" || strings.HasPrefix(c.text, "make ") || strings.Contains(c.text, "--watch") {
			continue
		}
		out := runIn(t, root, environment, strings.ReplaceAll(c.text, "POD", pod))
		ran++
		switch {
		case strings.Contains(c.text, "get pods"):
			pod = firstPod(t, root, environment)
		case strings.Contains(c.text, "explain") && !strings.Contains(out, "steered to gpu-"):
			t.Errorf("%s does not say where the pod goes:\n%s", c.text, out)
		}
	}
	if ran < 4 {
		t.Errorf("only %d commands were run", ran)
	}
}

// firstPod waits until the sample's pods have nodes, all the same one, and returns the
// name of one of them.
func firstPod(t *testing.T, root string, environment []string) string {
	t.Helper()
	runIn(t, root, environment, "kubectl -n gpu-binpacker-sample wait pods --all --for=condition=PodScheduled --timeout=1m")
	fields := strings.Fields(runIn(t, root, environment,
		`kubectl -n gpu-binpacker-sample get pods -o jsonpath='{range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}'`))
	for i := 1; i < len(fields); i += 2 {
		if fields[i] != fields[1] {
			t.Errorf("the sample's pods are not on one node: %v", fields)
		}
	}
	if len(fields) != 16 {
		t.Fatalf("the sample has not 8 pods: %v", fields)
	}
	return fields[0]
}

// startPlayground starts it, and returns the environment of a shell that does what it
// says. It ends with the test, by an interrupt and without an error.
func startPlayground(t *testing.T, root string) (environment []string) {
	t.Helper()
	program := programs.Program{
		Name: "playground", Package: "github.com/gpu-binpacker/gpu-binpacker/test/playground",
		Dir: filepath.Join(root, "test"), Output: filepath.Join(root, "bin", "playground"),
	}
	if err := program.Build(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program.Output)
	cmd.Dir, cmd.Stderr = root, t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		for range lines { // until it closes its output
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the playground ended with %v", err)
		}
	})
	limit := time.After(3 * time.Minute)
	for {
		select {
		case line, more := <-lines:
			if !more {
				t.Fatal("the playground ended")
			}
			t.Log(line)
			if match := exported.FindStringSubmatch(line); match != nil {
				return append(os.Environ(), "KUBECONFIG="+match[1], "PATH="+match[2]+string(os.PathListSeparator)+os.Getenv("PATH"))
			}
		case <-limit:
			t.Fatal("the playground did not come up")
		}
	}
}

// runIn runs a command of a reader, which must not fail.
func runIn(t *testing.T, dir string, environment []string, text string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", text)
	cmd.Dir, cmd.Env = dir, environment
	out, err := cmd.CombinedOutput()
	t.Logf("$ %s\n%s", text, out)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(out)
}
