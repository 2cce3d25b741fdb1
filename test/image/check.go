package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// sizeLimit is what a node may have to pull for its platform, in bytes.
const sizeLimit = 40_000_000

// machines are the ELF machines by GOARCH.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// content is what check found for one platform.
type content struct {
	platform string
	// size is what is pulled: manifest, configuration and layer, in bytes.
	size int64
	// unpacked is the size of the binary in bytes.
	unpacked int64
	binary   []byte
}

// check tells whether index has exactly one image for each platform and whether
// each is one that the Deployment can run. Its error lists all that is wrong.
func check(index v1.ImageIndex, platforms []v1.Platform) ([]content, error) {
	// Digests and sizes of everything, down to the layers' content.
	if err := validate.Index(index); err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var got, want []string
	for _, m := range manifest.Manifests {
		if m.Platform == nil {
			return nil, fmt.Errorf("the image %s states no platform", m.Digest)
		}
		got = append(got, m.Platform.String())
	}
	for _, p := range platforms {
		want = append(want, p.String())
	}
	if !slices.Equal(got, want) {
		return nil, fmt.Errorf("images for %v, want %v", got, want)
	}
	var contents []content
	var problems []error
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			return nil, err
		}
		c, err := checkImage(image, *m.Platform)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", m.Platform, err))
		}
		contents = append(contents, c)
	}
	return contents, errors.Join(problems...)
}

func checkImage(image v1.Image, platform v1.Platform) (content, error) {
	c := content{platform: platform.String()}
	file, err := image.ConfigFile()
	if err != nil {
		return c, err
	}
	if got := file.OS + "/" + file.Architecture; got != c.platform {
		return c, fmt.Errorf("the configuration says %s", got)
	}
	for field, values := range map[string][2][]string{
		"entrypoint": {file.Config.Entrypoint, {entrypoint}},
		"command":    {file.Config.Cmd, {argument}},
		"user":       {{file.Config.User}, {user}},
	} {
		if !slices.Equal(values[0], values[1]) {
			return c, fmt.Errorf("the %s is %q, want %q", field, values[0], values[1])
		}
	}
	if c.size, err = pulled(image); err != nil {
		return c, err
	}
	if c.size >= sizeLimit {
		return c, fmt.Errorf("%d bytes are to be pulled, want fewer than %d", c.size, sizeLimit)
	}
	if c.binary, err = onlyFile(image); err != nil {
		return c, err
	}
	c.unpacked = int64(len(c.binary))
	return c, checkBinary(c.binary, platform.Architecture)
}

// pulled returns how many bytes a node without any of the image pulls.
func pulled(image v1.Image) (int64, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return 0, err
	}
	size, err := image.Size()
	if err != nil {
		return 0, err
	}
	size += manifest.Config.Size
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size, nil
}

// onlyFile returns the content of the one file that the image may have.
func onlyFile(image v1.Image) ([]byte, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	if len(layers) != 1 {
		return nil, fmt.Errorf("%d layers, want 1", len(layers))
	}
	reader, err := layers[0].Uncompressed()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	files := tar.NewReader(reader)
	header, err := files.Next()
	if err != nil {
		return nil, fmt.Errorf("reading the layer: %w", err)
	}
	if "/"+header.Name != entrypoint || header.Typeflag != tar.TypeReg || header.Mode != 0o755 || header.Uid != 0 || header.Gid != 0 {
		return nil, fmt.Errorf("the layer has %s, type %c, mode %o, owner %d:%d, want the file %s, mode 755, owner 0:0",
			header.Name, header.Typeflag, header.Mode, header.Uid, header.Gid, strings.TrimPrefix(entrypoint, "/"))
	}
	binary, err := io.ReadAll(files)
	if err != nil {
		return nil, fmt.Errorf("reading the layer: %w", err)
	}
	if next, err := files.Next(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the layer has a second file %v, %w", next, err)
	}
	return binary, nil
}

// checkBinary tells whether a binary runs in an image that has no other file: it
// is for the right machine and needs neither a loader nor a library.
func checkBinary(binary []byte, architecture string) error {
	file, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("reading the binary: %w", err)
	}
	machine, known := machines[architecture]
	if !known || file.Machine != machine {
		return fmt.Errorf("the binary is for %s, want %s for %s", file.Machine, machine, architecture)
	}
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP || program.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("the binary is linked dynamically (%s); build it with CGO_ENABLED=0", program.Type)
		}
	}
	return nil
}
