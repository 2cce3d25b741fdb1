package main

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The image as make image builds it, for this machine's architecture, read back. That of all
// platforms is in platforms_test.go, since each is compiled for minutes.
func TestProduct(t *testing.T) {
	here := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	checkProduct(t, t.TempDir(), []v1.Platform{here}, "IMAGE_PLATFORMS="+here.String())
}

// checkProduct builds the image into dir and checks that it is for the platforms.
func checkProduct(t *testing.T, dir string, platforms []v1.Platform, variables ...string) {
	t.Helper()
	args := append([]string{"-C", repository, "image", "VERSION=v0.0.1-test", "OUTPUT=" + dir, "SOURCE_DATE_EPOCH=1795953600"}, variables...)
	run(t, nil, "make", args...)
	index, remove, err := readArchive(filepath.Join(dir, "image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	contents, err := check(index, platforms)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range contents {
		t.Logf("%s: %d bytes to pull, %d unpacked", c.platform, c.size, c.unpacked)
	}
	if got := runBinary(t, contents); !strings.Contains(got, "v0.0.1-test\n") || !strings.Contains(got, "linux/") {
		t.Errorf("version prints %q", got)
	}
}
