package programs

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sumsFile is the name of the checksums in a release, and in this package.
const sumsFile = "prebuilt.txt"

// ReleasePlatforms are those that programs are published for.
var ReleasePlatforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// Release builds the programs of the version in test/go.mod for platforms such as
// linux/arm64 into dir, each as a gzip file, with their checksums in prebuilt.txt: what
// is published, and what is to be committed here. Whoever builds the same commit with
// the same Go version gets the same programs.
func Release(ctx context.Context, out io.Writer, dir string, platforms []string) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}
	set, err := newKubernetesSet(ctx, root, "")
	if err != nil {
		return err
	}
	all, err := pinnedPrograms(ctx, root, set)
	if err != nil {
		return err
	}
	return release(ctx, out, all, dir, platforms)
}

func release(ctx context.Context, out io.Writer, all []Program, dir string, platforms []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, platform := range platforms {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("%q is no platform; write system and architecture, for example linux/arm64", platform)
		}
		for _, b := range batches(forPlatform(all, dir, goos, goarch)) {
			if err := b.build(ctx, out); err != nil {
				return err
			}
			for _, p := range b {
				sum, err := pack(p.Output)
				if err != nil {
					return fmt.Errorf("packing %s: %w", p.Output, err)
				}
				fmt.Fprintf(&sums, "%s  %s\n", sum, filepath.Base(p.Output))
			}
		}
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), sums.Bytes(), 0o644)
}

// forPlatform are the programs as they are built for a platform.
func forPlatform(all []Program, dir, goos, goarch string) []Program {
	var built []Program
	for _, p := range all {
		p.Output = filepath.Join(dir, p.prebuiltName(goos, goarch))
		p.Flags = append(slices.Clone(p.Flags), "-trimpath")
		p.Environment = append(slices.Clone(p.Environment), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
		built = append(built, p)
	}
	return built
}

// pack replaces a file by one with .gz, and returns the SHA-256 of what is in it.
func pack(name string) (sum string, err error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err = writer.Write(content)
	if err := errors.Join(err, writer.Close()); err != nil {
		return "", err
	}
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:]), errors.Join(os.WriteFile(name+".gz", packed.Bytes(), 0o644), os.Remove(name))
}
