package programs

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// KubernetesVariable names an environment variable. When it is set, Build returns
// the programs of the Kubernetes version that it names, such as 1.34.4, instead of
// those of the version in test/go.mod.
const KubernetesVariable = "GPU_BINPACKER_TEST_KUBERNETES"

// testedKubernetes are the versions that `make test-versions` tests besides that
// of test/go.mod, ascending: the last release of a minor version that is to be had
// as a Go module. This is the only place that names them.
var testedKubernetes = []string{"1.34.4", "1.35.4", "1.36.3"}

// kubernetesModule is the module of kube-apiserver, kube-controller-manager and
// kube-scheduler.
const kubernetesModule = "k8s.io/kubernetes"

// kubernetesPrograms are the programs that belong to a Kubernetes version, cheapest
// first: a build of one makes the next ones quicker.
var kubernetesPrograms = []string{KubeScheduler, APIServer, ControllerManager}

// TestedKubernetes returns the Kubernetes versions that the product is tested on,
// ascending and without v: 1.34.4. The last one is that of test/go.mod.
func TestedKubernetes(ctx context.Context) ([]string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	pinned, err := pinnedKubernetes(ctx, root)
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(testedKubernetes), strings.TrimPrefix(pinned, "v")), nil
}

// ParseKubernetesVersion reads a full version, with or without v, and returns it
// with v: v1.34.4, or v1.38.0-beta.0.
func ParseKubernetesVersion(text string) (string, error) {
	version := "v" + strings.TrimPrefix(text, "v")
	if !semver.IsValid(version) || semver.Canonical(version) != version || semver.Major(version) != "v1" {
		return "", fmt.Errorf("%q is no Kubernetes version; write minor and patch, for example 1.34.4", text)
	}
	return version, nil
}

// kubernetesSet is where the programs of one Kubernetes version are and what they
// are built from.
type kubernetesSet struct {
	// version has a v in front.
	version string
	// pinned is set for the version of test/go.mod: its programs are in bin/ and
	// built from that module.
	pinned bool
}

// newKubernetesSet returns the set of a version as a user writes it, of that in
// test/go.mod when it is empty.
func newKubernetesSet(ctx context.Context, root, text string) (kubernetesSet, error) {
	pinned, err := pinnedKubernetes(ctx, root)
	if err != nil {
		return kubernetesSet{}, err
	}
	if text == "" {
		return kubernetesSet{version: pinned, pinned: true}, nil
	}
	version, err := ParseKubernetesVersion(text)
	return kubernetesSet{version: version, pinned: version == pinned}, err
}

// pinnedKubernetes returns the version in test/go.mod, with v.
func pinnedKubernetes(ctx context.Context, root string) (string, error) {
	versions, err := moduleVersions(ctx, filepath.Join(root, "test"), kubernetesModule)
	return versions[kubernetesModule], err
}

// folder is where the programs are, relative to bin/. Progress lines start with it.
func (s kubernetesSet) folder() string {
	if s.pinned {
		return ""
	}
	return filepath.Join("kubernetes", s.version)
}

// programs lists the programs that the version in go.mod selects: test/go.mod for
// the pinned set, else one that is generated.
func (s kubernetesSet) programs(ctx context.Context, root string) ([]Program, error) {
	bin := filepath.Join(root, "bin")
	if s.pinned {
		return s.programsOf(bin, filepath.Join(root, "test"), nil), nil
	}
	module, environment, err := s.prepareModule(ctx, root)
	return s.programsOf(bin, module, environment), err
}

// programsOf describes the programs. module is the directory of the go.mod that
// selects the versions, environment what the go command needs besides.
func (s kubernetesSet) programsOf(bin, module string, environment []string) []Program {
	var list []Program
	for _, name := range kubernetesPrograms {
		program := Program{
			Name:        filepath.Join(s.folder(), name),
			Package:     kubernetesModule + "/cmd/" + name,
			Version:     s.version,
			Dir:         module,
			Output:      filepath.Join(bin, s.folder(), name),
			LinkerFlags: kubernetesLinkerFlags(s.version),
			Environment: environment,
		}
		if !s.pinned {
			// The module is generated: the go command completes it.
			program.Flags = []string{"-mod=mod"}
		}
		list = append(list, program)
	}
	return list
}

// Build returns the binaries of the Kubernetes version that KubernetesVariable
// names, by default that of test/go.mod. It builds those that are missing in bin/
// or have another version. The first build takes minutes, so that progress is
// written to out line by line.
func Build(ctx context.Context, out io.Writer) (Binaries, error) {
	text := os.Getenv(KubernetesVariable)
	binaries, err := BuildKubernetes(ctx, out, text)
	if err != nil && text != "" {
		return Binaries{}, fmt.Errorf("%s=%s: %w", KubernetesVariable, text, err)
	}
	return binaries, err
}

// BuildKubernetes is Build for a version, such as 1.34.4, whatever the variable
// says. Programs of another version than that of test/go.mod are in
// bin/kubernetes/v1.34.4; the rest of a control plane is the same for all versions.
// Empty means the version of test/go.mod.
func BuildKubernetes(ctx context.Context, out io.Writer, version string) (Binaries, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return Binaries{}, err
	}
	set, err := newKubernetesSet(ctx, root, version)
	if err != nil {
		return Binaries{}, err
	}
	if dir := os.Getenv(BinariesVariable); dir != "" {
		return findBinaries(dir, set.folder())
	}
	bin := filepath.Join(root, "bin")
	first := func() ([]Program, error) { return programs(ctx, root) }
	if set.pinned {
		first = func() ([]Program, error) { return pinnedPrograms(ctx, root, set) }
	}
	if err := ensureAll(ctx, out, bin, first); err != nil || set.pinned {
		return set.binaries(bin, err)
	}
	// The lock is that of the set's folder: a build of minutes must not keep tests of
	// other versions waiting.
	err = ensureAll(ctx, out, filepath.Join(bin, set.folder()), func() ([]Program, error) { return set.programs(ctx, root) })
	return set.binaries(bin, err)
}

// pinnedPrograms are all programs of the version of test/go.mod: one go command builds
// them together.
func pinnedPrograms(ctx context.Context, root string, set kubernetesSet) ([]Program, error) {
	all, err := programs(ctx, root)
	if err != nil {
		return nil, err
	}
	more, err := set.programs(ctx, root)
	return append(all, more...), err
}

// binaries finds what was built, unless it could not be.
func (s kubernetesSet) binaries(bin string, err error) (Binaries, error) {
	if err != nil {
		return Binaries{}, err
	}
	return findBinaries(bin, s.folder())
}
