//go:build platforms

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Everything that a release has, for all platforms of the Makefile: the image, and what
// make release-files makes of it.
func TestAllPlatforms(t *testing.T) {
	dir := t.TempDir()
	checkProduct(t, dir, []v1.Platform{amd64, arm64})
	run(t, nil, "make", "-C", repository, "release-files", "VERSION=v0.0.1-test", "IMAGE=registry.example.com/gpu-binpacker",
		"OUTPUT="+dir, "SOURCE_DATE_EPOCH=1795953600")
	entries, err := os.ReadDir(filepath.Join(dir, "release"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	for _, want := range []string{
		"kubectl-gpu_binpacker_v0.0.1-test_darwin_amd64.tar.gz", "kubectl-gpu_binpacker_v0.0.1-test_darwin_arm64.tar.gz",
		"kubectl-gpu_binpacker_v0.0.1-test_linux_amd64.tar.gz", "kubectl-gpu_binpacker_v0.0.1-test_linux_arm64.tar.gz",
		"kubectl-gpu_binpacker_v0.0.1-test_windows_amd64.zip", "kubectl-gpu_binpacker_v0.0.1-test_windows_arm64.zip",
		"gpu-binpacker_v0.0.1-test_linux_amd64.cdx.json", "gpu-binpacker_v0.0.1-test_windows_arm64.cdx.json",
		"gpu-binpacker.yaml", "install.yaml",
	} {
		if !strings.Contains(strings.Join(names, "\n")+"\n", want+"\n") {
			t.Errorf("the release has no %s, only %v", want, names)
		}
	}
}
