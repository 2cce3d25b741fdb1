package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

// change returns an index for amd64 whose image is another one.
func change(t *testing.T, other func(v1.Image) (v1.Image, error)) v1.ImageIndex {
	t.Helper()
	image, err := buildImage(binary{amd64, program(t, "amd64")}, options{created: created})
	if err != nil {
		t.Fatal(err)
	}
	if image, err = other(image); err != nil {
		t.Fatal(err)
	}
	return mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &amd64}})
}

// checkRead checks what is read back after index was written to an archive.
func checkRead(t *testing.T, index v1.ImageIndex) ([]content, error) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := writeArchive(archive, index, ""); err != nil {
		t.Fatal(err)
	}
	read, remove, err := readArchive(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	return check(read, []v1.Platform{amd64})
}

func configure(edit func(*v1.Config)) func(v1.Image) (v1.Image, error) {
	return func(image v1.Image) (v1.Image, error) {
		file, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		config := *file.Config.DeepCopy()
		edit(&config)
		return mutate.Config(image, config)
	}
}

// dynamic returns a program that asks for a loader: a static one whose program
// header for the stack is declared to be the loader's name.
func dynamic(t *testing.T) string {
	t.Helper()
	path := program(t, "amd64")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stack := []byte{0x51, 0xe5, 0x74, 0x64} // elf.PT_GNU_STACK, little endian
	interpreter := []byte{byte(elf.PT_INTERP), 0, 0, 0}
	// The headers are at the start of the file.
	changed := bytes.Replace(content[:4096], stack, interpreter, 1)
	if bytes.Equal(changed, content[:4096]) {
		t.Fatal("the program has no header for the stack")
	}
	if err := os.WriteFile(path, append(changed, content[4096:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each image is one that a node would pull and could not run, or not as it should.
func TestCheckRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		index func(*testing.T) v1.ImageIndex
		want  string
	}{
		"other platform": {func(t *testing.T) v1.ImageIndex {
			index, err := build(options{binaries: []binary{{arm64, program(t, "arm64")}}, created: created})
			if err != nil {
				t.Fatal(err)
			}
			return index
		}, "images for [linux/arm64], want [linux/amd64]"},
		"entrypoint": {func(t *testing.T) v1.ImageIndex {
			return change(t, configure(func(c *v1.Config) { c.Entrypoint = []string{"gpu-binpacker"} }))
		}, "entrypoint"},
		"command": {func(t *testing.T) v1.ImageIndex {
			return change(t, configure(func(c *v1.Config) { c.Cmd = nil }))
		}, "command"},
		"root": {func(t *testing.T) v1.ImageIndex {
			return change(t, configure(func(c *v1.Config) { c.User = "" }))
		}, "user"},
		"second layer": {func(t *testing.T) v1.ImageIndex {
			return change(t, func(image v1.Image) (v1.Image, error) {
				layer, err := random.Layer(100, "application/vnd.oci.image.layer.v1.tar+gzip")
				if err != nil {
					return nil, err
				}
				return mutate.AppendLayers(image, layer)
			})
		}, "2 layers"},
		"size": {func(t *testing.T) v1.ImageIndex {
			return change(t, func(image v1.Image) (v1.Image, error) {
				layer, err := random.Layer(sizeLimit, "application/vnd.oci.image.layer.v1.tar+gzip")
				if err != nil {
					return nil, err
				}
				return mutate.AppendLayers(image, layer)
			})
		}, "bytes are to be pulled"},
		"architecture": {func(t *testing.T) v1.ImageIndex {
			index, err := build(options{binaries: []binary{{amd64, program(t, "arm64")}}, created: created})
			if err != nil {
				t.Fatal(err)
			}
			return index
		}, "EM_AARCH64"},
		"dynamic": {func(t *testing.T) v1.ImageIndex {
			index, err := build(options{binaries: []binary{{amd64, dynamic(t)}}, created: created})
			if err != nil {
				t.Fatal(err)
			}
			return index
		}, "CGO_ENABLED=0"},
		"not a program": {func(t *testing.T) v1.ImageIndex {
			index, err := build(options{binaries: []binary{{amd64, "doc.go"}}, created: created})
			if err != nil {
				t.Fatal(err)
			}
			return index
		}, "bad magic"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := checkRead(t, tc.index(t))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	if _, err := checkRead(t, change(t, func(image v1.Image) (v1.Image, error) { return image, nil })); err != nil {
		t.Errorf("the image that the others differ from: %v", err)
	}
}

// An archive that was damaged on its way, or that is somebody else's.
func TestReadArchiveRefuses(t *testing.T) {
	pack := func(name string, typeflag byte) string {
		var buffer bytes.Buffer
		writer := tar.NewWriter(&buffer)
		if err := writer.WriteHeader(&tar.Header{Name: name, Typeflag: typeflag, Linkname: "/etc/passwd", Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := os.WriteFile(file, buffer.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, file := range map[string]string{
		"no layout": pack("README", tar.TypeReg),
		"outside":   pack("../outside", tar.TypeReg),
		"link":      pack("index.json", tar.TypeSymlink),
		"no tar":    "doc.go",
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := readArchive(file); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("error %v, want one that names the file", err)
			}
		})
	}
}
