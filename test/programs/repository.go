package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// RepositoryRoot returns the directory of the checkout: the nearest parent of
// the working directory that contains test/go.mod. Tests run in the directory
// of their package, make in the root; both find it.
func RepositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for from := dir; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, "test", "go.mod"))
		if err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the repository: no test/go.mod in any parent of %s", from)
		}
	}
}

// moduleVersions returns the versions of modules, path -> version, as the go.mod
// in dir selects them.
func moduleVersions(ctx context.Context, dir string, modules ...string) (map[string]string, error) {
	out, err := goCommand(ctx, dir, nil, append([]string{"list", "-m", "-f", "{{.Path}} {{.Version}}"}, modules...)...)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		versions[path] = version
	}
	return versions, nil
}

// goVersion returns the version of the Go toolchain that builds in dir, with
// variables added to the environment.
func goVersion(ctx context.Context, dir string, environment ...string) (string, error) {
	out, err := goCommand(ctx, dir, environment, "env", "GOVERSION")
	return strings.TrimSpace(string(out)), err
}

// ModuleDir returns the directory of a module's source in the version that the
// go.mod in dir selects. It downloads the module when that is missing.
func ModuleDir(ctx context.Context, dir, module string) (string, error) {
	out, err := goCommand(ctx, dir, nil, "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var download struct{ Dir string }
	if err := json.Unmarshal(out, &download); err != nil {
		return "", fmt.Errorf("reading the answer of go mod download %s: %w", module, err)
	}
	return download.Dir, nil
}

// goCommand runs the go command in dir, with variables added to the environment,
// and returns its standard output.
func goCommand(ctx context.Context, dir string, environment []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(goEnvironment(), environment...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running go %s in %s: %w", strings.Join(args, " "), dir, errors.Join(err, textError(stderr.String())))
	}
	return out, nil
}

// goEnvironment is the environment of go commands. A go.work file in a parent
// directory must not change the versions in go.mod.
func goEnvironment() []string {
	return append(os.Environ(), "GOWORK=off")
}

// textError makes an error of what a command printed, nil when it printed
// nothing.
func textError(output string) error {
	output = strings.TrimSpace(output)
	if output == "" {
		return nil
	}
	return errors.New(output)
}
