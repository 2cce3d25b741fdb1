package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// plugin is what kubectl looks for when the user says kubectl gpu-binpacker.
const plugin = "kubectl-gpu_binpacker"

// archives are the command line's archives, one for each platform.
type archives struct {
	version, license, output string
	created                  time.Time
}

// member is a file in an archive.
type member struct {
	name    string
	mode    int64
	content []byte
}

// write writes an archive for each argument OS/ARCHITECTURE=BINARY and prints its
// path: a zip file for Windows, else a tar file.
func (a archives) write(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("no binaries: want arguments like linux/amd64=BINARY")
	}
	license, err := os.ReadFile(a.license)
	if err != nil {
		return fmt.Errorf("reading the license: %w", err)
	}
	for _, arg := range args {
		platform, path, _ := strings.Cut(arg, "=")
		goos, goarch, _ := strings.Cut(platform, "/")
		if goos == "" || goarch == "" || path == "" {
			return fmt.Errorf("argument %q: want OS/ARCHITECTURE=BINARY", arg)
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading the binary for %s: %w", platform, err)
		}
		members := []member{{"LICENSE", 0o644, license}, {plugin, 0o755, binary}}
		name := filepath.Join(a.output, strings.Join([]string{plugin, a.version, goos, goarch}, "_"))
		writer := writeTarGz
		if goos == "windows" {
			writer = writeZip
			members[1].name += ".exe"
			name += ".zip"
		} else {
			name += ".tar.gz"
		}
		if err := writer(name, members, a.created); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		fmt.Fprintln(out, name)
	}
	return nil
}

func writeTarGz(file string, members []member, created time.Time) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	writer := tar.NewWriter(compressed)
	for _, m := range members {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: m.name, Mode: m.mode, Size: int64(len(m.content)), ModTime: created}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		if _, err := writer.Write(m.content); err != nil {
			return err
		}
	}
	return errors.Join(writer.Close(), compressed.Close(), out.Close())
}

func writeZip(file string, members []member, created time.Time) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	writer := zip.NewWriter(out)
	for _, m := range members {
		header := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: created}
		header.SetMode(os.FileMode(m.mode))
		entry, err := writer.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(m.content); err != nil {
			return err
		}
	}
	return errors.Join(writer.Close(), out.Close())
}
