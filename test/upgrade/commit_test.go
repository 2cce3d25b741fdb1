//go:build upgrade

package upgrade

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// from is the commit of gpu-binpacker to upgrade from.
var from = flag.String("from", "HEAD~1", "commit of gpu-binpacker to upgrade from")

// gitTimeout limits a command of git.
const gitTimeout = time.Minute

// product is gpu-binpacker of one commit.
type product struct {
	// binary is the program, configuration the file that is shipped with it.
	binary        string
	configuration []byte
}

// earlier builds gpu-binpacker of the commit of -from, in a worktree that the end of
// the test removes.
func earlier(t *testing.T) product {
	t.Helper()
	root, err := programs.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "source")
	// The user's hooks are for checkouts that the user makes.
	git(t, root, "-c", "core.hooksPath="+os.DevNull, "worktree", "add", "--detach", folder, *from)
	t.Cleanup(func() { git(t, root, "worktree", "remove", "--force", folder) })
	return build(t, folder, filepath.Join(t.TempDir(), "gpu-binpacker"))
}

// current builds gpu-binpacker of the working tree.
func current(t *testing.T) product {
	t.Helper()
	root, err := programs.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	return build(t, root, filepath.Join(root, "bin", "gpu-binpacker"))
}

func build(t *testing.T, source, binary string) product {
	t.Helper()
	program := programs.Program{
		Name: "gpu-binpacker", Package: "github.com/gpu-binpacker/gpu-binpacker", Dir: source, Output: binary,
	}
	if err := program.Build(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	configuration, err := os.ReadFile(filepath.Join(source, "config", "manager", "configuration.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return product{binary, configuration}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	// The context of a test is over when its cleanup runs.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// run runs a command of the product on a control plane and returns its output.
func (p product) run(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", p.binary, args, err, stderr.String())
	}
	return string(out)
}
