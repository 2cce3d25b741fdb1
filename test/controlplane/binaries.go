package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// BinariesVariable names an environment variable. When it is set, Build takes
// the binaries from the folder it names, whatever their versions, and builds
// nothing.
const BinariesVariable = "GPU_BINPACKER_TEST_BIN"

// Binaries are paths of the programs that a control plane runs.
type Binaries struct {
	Etcd              string
	APIServer         string
	ControllerManager string
	Scheduler         string
	Kwok              string
	CertManager       string
}

// Build returns the binaries, building those that are missing in bin/ or have
// another version than go.mod says. The first build takes minutes, so that
// progress is written to out line by line.
func Build(ctx context.Context, out io.Writer) (Binaries, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return Binaries{}, err
	}
	if dir := os.Getenv(BinariesVariable); dir != "" {
		return findBinaries(dir)
	}
	programs, err := programs(ctx, root)
	if err != nil {
		return Binaries{}, err
	}
	bin := filepath.Join(root, "bin")
	unlock, err := lockDir(ctx, bin, out)
	if err != nil {
		return Binaries{}, err
	}
	defer unlock()
	toolchain, err := goVersion(ctx, root)
	if err != nil {
		return Binaries{}, err
	}
	for _, program := range programs {
		if err := program.ensure(ctx, out, toolchain); err != nil {
			return Binaries{}, err
		}
	}
	return findBinaries(bin)
}

// programs lists what Build builds, cheapest first, with the versions that the
// go.mod files select.
func programs(ctx context.Context, root string) ([]Program, error) {
	test := filepath.Join(root, "test")
	const etcd, kubernetes, kwok = "go.etcd.io/etcd/server/v3", "k8s.io/kubernetes", "sigs.k8s.io/kwok"
	versions, err := moduleVersions(ctx, test, etcd, kubernetes, kwok)
	if err != nil {
		return nil, err
	}
	certManager, err := certManagerProgram(root)
	if err != nil {
		return nil, err
	}
	list := []Program{
		{Name: Etcd, Package: etcd, Version: versions[etcd]},
		{Name: Kwok, Package: kwok + "/cmd/kwok", Version: versions[kwok]},
	}
	for _, name := range []string{KubeScheduler, APIServer, ControllerManager} {
		list = append(list, Program{
			Name:        name,
			Package:     kubernetes + "/cmd/" + name,
			Version:     versions[kubernetes],
			LinkerFlags: kubernetesLinkerFlags(versions[kubernetes]),
		})
	}
	for i := range list {
		list[i].Dir = test
		list[i].Output = filepath.Join(root, "bin", list[i].Name)
	}
	return append(list, certManager), nil
}

// kubernetesLinkerFlags make a binary report the version of its module. Built
// without them it would call itself v0.0.0, in the API server's /version too.
func kubernetesLinkerFlags(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const pkg = "k8s.io/component-base/version"
	return fmt.Sprintf("-X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", pkg, version, major, minor)
}

// certManagerProgram describes test/certmanager. Its source is ours, so that a
// version says nothing about its age: a digest of the source is linked in.
func certManagerProgram(root string) (Program, error) {
	dir := filepath.Join(root, "test", "certmanager")
	digest, err := sourceDigest(dir)
	if err != nil {
		return Program{}, err
	}
	return Program{
		Name:        CertManager,
		Package:     "github.com/gpu-binpacker/gpu-binpacker/test/certmanager",
		Dir:         dir,
		Output:      filepath.Join(root, "bin", CertManager),
		LinkerFlags: "-X main.sourceDigest=" + digest,
	}, nil
}

// sourceDigest hashes the names and contents of the files in dir.
func sourceDigest(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("hashing %s: %w", dir, err)
	}
	hash := sha256.New()
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", fmt.Errorf("hashing %s: %w", dir, err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", entry.Name(), len(content), content)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}

// findBinaries returns the binaries in dir and fails when one is missing.
func findBinaries(dir string) (Binaries, error) {
	// The components run in another directory.
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Binaries{}, fmt.Errorf("finding binaries: %w", err)
	}
	var found Binaries
	for name, path := range map[string]*string{
		Etcd:              &found.Etcd,
		APIServer:         &found.APIServer,
		ControllerManager: &found.ControllerManager,
		KubeScheduler:     &found.Scheduler,
		Kwok:              &found.Kwok,
		CertManager:       &found.CertManager,
	} {
		*path = filepath.Join(dir, name)
		if _, err := os.Stat(*path); err != nil {
			return Binaries{}, fmt.Errorf("finding binaries: %w", err)
		}
	}
	return found, nil
}
