package programs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// stagingFolder is where k8s.io/kubernetes keeps the modules that are released
// with it.
const stagingFolder = "./staging/"

// prepareModule makes the folder of the set a module that its programs can be built
// from, unless it is one, and returns what the go command needs in its environment
// to build there.
func (s kubernetesSet) prepareModule(ctx context.Context, root string) (dir string, environment []string, err error) {
	test := filepath.Join(root, "test")
	dir = filepath.Join(root, "bin", s.folder())
	module, err := s.readModule(dir)
	if err != nil {
		return "", nil, err
	}
	if module == nil {
		if module, err = s.writeModule(ctx, test, dir); err != nil {
			return "", nil, err
		}
	}
	ours, err := goVersion(ctx, test)
	if err != nil {
		return "", nil, err
	}
	environment = toolchainFor(module.Go.Version, ours)
	if _, err := goVersion(ctx, dir, environment...); err != nil {
		return "", nil, fmt.Errorf("kubernetes %s needs Go %s, the go command here is %s and could not get that with %s; install it: %w",
			s.version, module.Go.Version, ours, strings.Join(environment, " "), err)
	}
	return dir, environment, nil
}

// toolchainFor returns the environment in which the go command, whose version is
// ours, builds a module with the given go line: with nothing added, if that is not
// newer.
func toolchainFor(goLine, ours string) []string {
	needed := "go" + goLine
	if version.Compare(needed, ours) <= 0 {
		return nil
	}
	if version.Lang(needed) == needed {
		needed += ".0" // a language version, which is no name of a release
	}
	return []string{"GOTOOLCHAIN=" + needed + "+auto"}
}

// readModule returns the generated go.mod in dir, nil when there is none that says
// what it must.
func (s kubernetesSet) readModule(dir string) (*modfile.File, error) {
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the module of Kubernetes %s: %w", s.version, err)
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil || file.Go == nil {
		return nil, nil
	}
	for _, require := range file.Require {
		if require.Mod.Path == kubernetesModule && require.Mod.Version == s.version {
			return file, nil
		}
	}
	return nil, nil
}

// writeModule generates the go.mod in dir from that of Kubernetes, which the go
// command finds from the directory test.
func (s kubernetesSet) writeModule(ctx context.Context, test, dir string) (*modfile.File, error) {
	answer, err := goCommand(ctx, test, nil, "list", "-m", "-json", kubernetesModule+"@"+s.version)
	if err != nil {
		return nil, fmt.Errorf("finding Kubernetes %s as a Go module: %w", s.version, err)
	}
	var listed struct{ GoMod string }
	if err := json.Unmarshal(answer, &listed); err != nil {
		return nil, fmt.Errorf("reading the answer of go list -m %s: %w", kubernetesModule, err)
	}
	text, err := os.ReadFile(listed.GoMod)
	if err != nil {
		return nil, fmt.Errorf("reading the go.mod of Kubernetes %s: %w", s.version, err)
	}
	module, err := s.generateModule(text)
	if err != nil {
		return nil, err
	}
	content, err := module.Format()
	if err != nil {
		return nil, fmt.Errorf("generating a module for Kubernetes %s: %w", s.version, err)
	}
	if err := writeWhole(filepath.Join(dir, "go.mod"), content); err != nil {
		return nil, fmt.Errorf("generating a module for Kubernetes %s: %w", s.version, err)
	}
	return module, nil
}

// generateModule makes a go.mod that builds Kubernetes as its own go.mod, the text,
// does. That one takes the modules that are released with Kubernetes from its own
// folder, which is not in the module; v1.34.4 is released with v0.34.4 of them.
func (s kubernetesSet) generateModule(text []byte) (*modfile.File, error) {
	original, err := modfile.Parse(kubernetesModule+"@"+s.version+"/go.mod", text, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the go.mod of Kubernetes %s: %w", s.version, err)
	}
	if original.Go == nil {
		return nil, fmt.Errorf("reading the go.mod of Kubernetes %s: no go line", s.version)
	}
	module := new(modfile.File)
	add := func(failure error) { err = errors.Join(err, failure) }
	add(module.AddModuleStmt("programs"))
	add(module.AddGoStmt(original.Go.Version))
	for _, setting := range original.Godebug {
		add(module.AddGodebug(setting.Key, setting.Value))
	}
	add(module.AddRequire(kubernetesModule, s.version))
	for _, replace := range original.Replace {
		replacement := replace.New
		if strings.HasPrefix(replacement.Path, stagingFolder) {
			replacement.Path, replacement.Version = replace.Old.Path, "v0."+strings.TrimPrefix(s.version, "v1.")
		}
		add(module.AddReplace(replace.Old.Path, replace.Old.Version, replacement.Path, replacement.Version))
	}
	if err != nil {
		return nil, fmt.Errorf("generating a module for Kubernetes %s: %w", s.version, err)
	}
	return module, nil
}

// writeWhole writes a file so that an interruption leaves the one before, or none.
func writeWhole(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	temporary := fmt.Sprintf("%s.%d.tmp", name, os.Getpid())
	defer os.Remove(temporary)
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
