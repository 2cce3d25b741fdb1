package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What the Dockerfile says as well.
const (
	entrypoint = "/gpu-binpacker"
	argument   = "serve"
	user       = "65532:65532"
)

// staticLabels are the labels that the Dockerfile sets too.
var staticLabels = map[string]string{
	"org.opencontainers.image.title":       "gpu-binpacker",
	"org.opencontainers.image.description": "Makes the default Kubernetes scheduler pack GPU pods",
	"org.opencontainers.image.licenses":    "Apache-2.0",
}

// options are the inputs of build; nothing else has a part in the digest.
type options struct {
	// binaries are in the order of the index.
	binaries []binary
	// version, revision and source are for labels; without a value no label.
	version, revision, source string
	// created is the time of images and files, in whole seconds.
	created time.Time
}

// binary is the static binary of one platform.
type binary struct {
	platform v1.Platform
	path     string
}

func (o options) platforms() []v1.Platform {
	platforms := make([]v1.Platform, len(o.binaries))
	for i, b := range o.binaries {
		platforms[i] = b.platform
	}
	return platforms
}

// build returns an index with an image for each binary.
func build(o options) (v1.ImageIndex, error) {
	if len(o.binaries) == 0 {
		return nil, errors.New("no binaries: want arguments like linux/amd64=BINARY")
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range o.binaries {
		image, err := buildImage(b, o)
		if err != nil {
			return nil, fmt.Errorf("building the image for %s: %w", b.platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: b.platform.DeepCopy()},
		})
	}
	return index, nil
}

func buildImage(b binary, o options) (v1.Image, error) {
	layer, err := buildLayer(b.path, o.created)
	if err != nil {
		return nil, err
	}
	base := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	base = mutate.ConfigMediaType(base, types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{
		Layer: layer,
		History: v1.History{
			Created:   v1.Time{Time: o.created},
			CreatedBy: "COPY " + strings.TrimPrefix(entrypoint, "/") + " " + entrypoint,
		},
	})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = b.platform.OS, b.platform.Architecture
	file.Created = v1.Time{Time: o.created}
	file.Config = v1.Config{
		Entrypoint: []string{entrypoint},
		Cmd:        []string{argument},
		User:       user,
		WorkingDir: "/",
		Env:        []string{"PATH=/"},
		Labels:     o.labels(),
	}
	return mutate.ConfigFile(image, file)
}

func (o options) labels() map[string]string {
	labels := map[string]string{}
	for key, value := range staticLabels {
		labels[key] = value
	}
	for key, value := range map[string]string{
		"org.opencontainers.image.version":  o.version,
		"org.opencontainers.image.revision": o.revision,
		"org.opencontainers.image.source":   o.source,
	} {
		if value != "" {
			labels[key] = value
		}
	}
	return labels
}

// buildLayer returns a layer with the binary as its only file. Owner and mode do
// not depend on the machine that builds.
func buildLayer(path string, created time.Time) (v1.Layer, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the binary: %w", err)
	}
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	header := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     strings.TrimPrefix(entrypoint, "/"),
		Mode:     0o755,
		Size:     int64(len(content)),
		ModTime:  created,
		Format:   tar.FormatPAX,
	}
	if err := writer.WriteHeader(header); err != nil {
		return nil, fmt.Errorf("writing the layer: %w", err)
	}
	if _, err := writer.Write(content); err != nil {
		return nil, fmt.Errorf("writing the layer: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("writing the layer: %w", err)
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil }
	return tarball.LayerFromOpener(opener,
		tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.BestCompression),
		tarball.WithCompressedCaching)
}
