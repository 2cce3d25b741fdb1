package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeArchive writes index as an OCI image layout into a tar file. name, if any,
// becomes the name of the index in the layout. Half a file is never left behind.
func writeArchive(file string, index v1.ImageIndex, name string) error {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	defer os.RemoveAll(dir)
	if err := writeLayout(dir, index, name); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	temporary := file + ".tmp"
	defer os.Remove(temporary)
	if err := writeTar(temporary, os.DirFS(dir)); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := os.Rename(temporary, file); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

func writeLayout(dir string, index v1.ImageIndex, name string) error {
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	var opts []layout.Option
	if name != "" {
		opts = append(opts, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name}))
	}
	return written.AppendIndex(index, opts...)
}

// writeTar writes the files of a folder in the order of their names, without
// times and owners.
func writeTar(file string, from fs.FS) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	writer := tar.NewWriter(out)
	err = fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = writer.Write(content)
		return err
	})
	return errors.Join(err, writer.Close(), out.Close())
}

// readArchive returns the index in an archive of writeArchive. The index reads
// from a temporary folder until remove is called.
func readArchive(file string) (index v1.ImageIndex, remove func(), err error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", file, err)
	}
	remove = func() { os.RemoveAll(dir) }
	if err := unpack(file, dir); err != nil {
		remove()
		return nil, nil, fmt.Errorf("reading %s: %w", file, err)
	}
	index, err = onlyIndex(dir)
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return index, remove, nil
}

// unpack unpacks the regular files of a tar file into dir and refuses names that
// lead out of it.
func unpack(file, dir string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written through the folder itself
	reader := tar.NewReader(in)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			return fmt.Errorf("%s is not a regular file", header.Name)
		}
		if err := root.MkdirAll(path.Dir(header.Name), 0o755); err != nil {
			return err
		}
		out, err := root.Create(header.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, reader)
		if err := errors.Join(err, out.Close()); err != nil {
			return fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
	}
}

func onlyIndex(dir string) (v1.ImageIndex, error) {
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
		return nil, fmt.Errorf("the layout has %d entries, want one, an index", len(manifest.Manifests))
	}
	return outer.ImageIndex(manifest.Manifests[0].Digest)
}
