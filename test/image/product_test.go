package main

import (
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The image as make image builds it, for both platforms, read back.
func TestProduct(t *testing.T) {
	dir := t.TempDir()
	run(t, nil, "make", "-C", repository, "image", "VERSION=v0.0.1-test", "OUTPUT="+dir, "SOURCE_DATE_EPOCH=1795953600")
	index, remove, err := readArchive(filepath.Join(dir, "image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	contents, err := check(index, []v1.Platform{amd64, arm64})
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
