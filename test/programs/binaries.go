package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Names of the programs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	KubeScheduler     = "kube-scheduler"
	Kwok              = "kwok"
	CertManager       = "cert-manager"
)

// BinariesVariable names an environment variable. When it is set, Build takes
// the binaries from the folder it names, whatever their versions, and builds
// nothing. Those of a Kubernetes version that was asked for are in a folder
// kubernetes/v1.34.4 there, as in bin/.
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

// programs lists the binaries that are the same for all Kubernetes versions, with
// the versions that the go.mod files select.
func programs(ctx context.Context, root string) ([]Program, error) {
	test, bin := filepath.Join(root, "test"), filepath.Join(root, "bin")
	const etcd, kwok = "go.etcd.io/etcd/server/v3", "sigs.k8s.io/kwok"
	versions, err := moduleVersions(ctx, test, etcd, kwok)
	if err != nil {
		return nil, err
	}
	certManager, err := certManagerProgram(root)
	return []Program{
		{Name: Etcd, Package: etcd, Version: versions[etcd], Dir: test, Output: filepath.Join(bin, Etcd)},
		{Name: Kwok, Package: kwok + "/cmd/kwok", Version: versions[kwok], Dir: test, Output: filepath.Join(bin, Kwok)},
		certManager,
	}, err
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
	test := filepath.Join(root, "test")
	digest, err := sourceDigest(filepath.Join(test, "certmanager"))
	if err != nil {
		return Program{}, err
	}
	return Program{
		Name:        CertManager,
		Package:     "github.com/gpu-binpacker/gpu-binpacker/test/certmanager",
		Dir:         test,
		Output:      filepath.Join(root, "bin", CertManager),
		LinkerFlags: "-X main.sourceDigest=" + digest,
	}, nil
}

// Product is gpu-binpacker itself, of the checkout.
func Product(root string) Program {
	return Program{
		Name:    "gpu-binpacker",
		Package: "github.com/gpu-binpacker/gpu-binpacker",
		Dir:     root,
		Output:  filepath.Join(root, "bin", "gpu-binpacker"),
	}
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

// findBinaries returns the binaries in dir, those of Kubernetes in a folder below
// it, and fails when one is missing.
func findBinaries(dir, kubernetes string) (Binaries, error) {
	// The components run in another directory.
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Binaries{}, fmt.Errorf("finding binaries: %w", err)
	}
	found := Binaries{
		Etcd:              filepath.Join(dir, Etcd),
		APIServer:         filepath.Join(dir, kubernetes, APIServer),
		ControllerManager: filepath.Join(dir, kubernetes, ControllerManager),
		Scheduler:         filepath.Join(dir, kubernetes, KubeScheduler),
		Kwok:              filepath.Join(dir, Kwok),
		CertManager:       filepath.Join(dir, CertManager),
	}
	for _, path := range []string{
		found.Etcd, found.APIServer, found.ControllerManager, found.Scheduler, found.Kwok, found.CertManager,
	} {
		if _, err := os.Stat(path); err != nil {
			return Binaries{}, fmt.Errorf("finding binaries: %w", err)
		}
	}
	return found, nil
}
