package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var repository = filepath.Join("..", "..", "..")

const digest = "sha256:8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"

// platforms are those of the Makefile.
var platforms = []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}

func release(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := command(args, &out)
	return out.String(), err
}

// makeArchives makes an archive for each platform; the binaries are texts.
func makeArchives(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	args := []string{"archives", "-version", "v0.1.0", "-license", filepath.Join(repository, "LICENSE"), "-created", "1795953600", "-output", folder}
	for _, platform := range platforms {
		binary := filepath.Join(t.TempDir(), "binary")
		if err := os.WriteFile(binary, []byte("binary for "+platform), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, platform+"="+binary)
	}
	if _, err := release(t, args...); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestArchives(t *testing.T) {
	folder := makeArchives(t)
	license := string(read(t, filepath.Join(repository, "LICENSE")))
	want := map[string]map[string]string{}
	for _, platform := range platforms {
		name := "kubectl-gpu_binpacker_v0.1.0_" + strings.ReplaceAll(platform, "/", "_")
		if strings.HasPrefix(platform, "windows") {
			want[name+".zip"] = map[string]string{"-rw-r--r-- LICENSE": license, "-rwxr-xr-x kubectl-gpu_binpacker.exe": "binary for " + platform}
		} else {
			want[name+".tar.gz"] = map[string]string{"-rw-r--r-- LICENSE": license, "-rwxr-xr-x kubectl-gpu_binpacker": "binary for " + platform}
		}
	}
	got := map[string]map[string]string{}
	again := makeArchives(t)
	for _, entry := range entries(t, folder) {
		content := read(t, filepath.Join(folder, entry))
		if strings.HasSuffix(entry, ".zip") {
			got[entry] = unzip(t, content)
		} else {
			got[entry] = untar(t, content)
		}
		if !bytes.Equal(content, read(t, filepath.Join(again, entry))) {
			t.Errorf("%s differs when it is made again", entry)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("archives (-want +got):\n%s", diff)
	}
}

func TestKrewManifest(t *testing.T) {
	folder := makeArchives(t)
	manifest := filepath.Join(t.TempDir(), "gpu-binpacker.yaml")
	if _, err := release(t, "krew", "-version", "v0.1.0", "-template", filepath.Join(repository, ".krew.yaml"), "-archives", folder, "-output", manifest); err != nil {
		t.Fatal(err)
	}
	if out, err := validate(t, manifest); err != nil {
		t.Errorf("krew refuses the manifest: %v\n%s\n%s", err, out, read(t, manifest))
	}
	var got struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, Sha256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(read(t, manifest), &got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.Version != "v0.1.0" || len(got.Spec.Platforms) != len(platforms) {
		t.Fatalf("version %s for %d platforms", got.Spec.Version, len(got.Spec.Platforms))
	}
	for i, platform := range platforms {
		p := got.Spec.Platforms[i]
		if is := p.Selector.MatchLabels["os"] + "/" + p.Selector.MatchLabels["arch"]; is != platform {
			t.Errorf("platform %d is %s, want %s", i, is, platform)
		}
		url, name := p.URI[:strings.LastIndex(p.URI, "/")], filepath.Base(p.URI)
		if url != "https://github.com/gpu-binpacker/gpu-binpacker/releases/download/v0.1.0" {
			t.Errorf("%s is not where a release has its files", url)
		}
		content := read(t, filepath.Join(folder, name))
		if !bytes.Contains([]byte(name), []byte(strings.ReplaceAll(platform, "/", "_"))) {
			t.Errorf("%s gets %s", platform, name)
		}
		if sum, err := checksum(filepath.Join(folder, name)); err != nil || sum != p.Sha256 {
			t.Errorf("%s has the checksum %s, %v, the manifest says %s", name, sum, err, p.Sha256)
		}
		unpack := untar
		if strings.HasSuffix(name, ".zip") {
			unpack = unzip
		}
		if _, ok := unpack(t, content)["-rwxr-xr-x "+p.Bin]; !ok {
			t.Errorf("%s has no program %s", name, p.Bin)
		}
	}
}

// What krew's own program refuses, so that its approval above means something.
func TestKrewRefusesTheTemplate(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "gpu-binpacker.yaml")
	if err := os.WriteFile(manifest, read(t, filepath.Join(repository, ".krew.yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := validate(t, manifest); err == nil {
		t.Errorf("krew takes a template for a manifest:\n%s", out)
	}
}

// validate runs krew's check of manifests, the version pinned in test/tools.
func validate(t *testing.T, manifest string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "validate-krew-manifest", "-skip-install", "-manifest", manifest)
	cmd.Dir = filepath.Join(repository, "test", "tools")
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err
}

func TestChecksums(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"b": "b\n", "a": "a\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Twice, since it must leave out its own file.
	for range 2 {
		if _, err := release(t, "checksums", folder); err != nil {
			t.Fatal(err)
		}
	}
	// By sha256sum.
	const want = `87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7  a
0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f  b
`
	if diff := cmp.Diff(want, string(read(t, filepath.Join(folder, "checksums.txt")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestArguments(t *testing.T) {
	image := "ghcr.io/a/b:v0.1.0@" + digest
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":         {nil, "archives, krew, chart, sbom or checksums"},
		"no version":      {[]string{"archives"}, "-version"},
		"branch":          {[]string{"krew", "-version", "main"}, "-version"},
		"no binary":       {[]string{"archives", "-version", "v0.1.0", "-license", "doc.go"}, "linux/amd64=BINARY"},
		"no such binary":  {[]string{"archives", "-version", "v0.1.0", "-license", "doc.go", "linux/amd64=/no/such"}, "/no/such"},
		"no license":      {[]string{"archives", "-version", "v0.1.0", "-license", "/no/such", "linux/amd64=doc.go"}, "license"},
		"no digest":       {[]string{"chart", "-version", "v0.1.0", "-image", "ghcr.io/a/b:v0.1.0@"}, "DIGEST"},
		"no chart":        {[]string{"chart", "-version", "v0.1.0", "-image", image, "-chart", "/no/such"}, "/no/such"},
		"no archives":     {[]string{"krew", "-version", "v0.1.0", "-template", filepath.Join(repository, ".krew.yaml"), "-archives", "/no/such"}, "/no/such/kubectl-gpu_binpacker"},
		"nothing to sum":  {[]string{"checksums", "testdata/empty"}, "testdata/empty"},
		"too many to sum": {[]string{"checksums", "a", "b"}, "2 arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := release(t, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func entries(t *testing.T, folder string) []string {
	t.Helper()
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(list))
	for i, entry := range list {
		names[i] = entry.Name()
	}
	return names
}

// untar returns the files of an archive, "mode name" -> content.
func untar(t *testing.T, content []byte) map[string]string {
	t.Helper()
	decompressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(decompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		file, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.FileInfo().Mode().String()+" "+header.Name] = string(file)
	}
}

// unzip is untar for zip files.
func unzip(t *testing.T, content []byte) map[string]string {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range reader.File {
		opened, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		file, err := io.ReadAll(opened)
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Mode().String()+" "+entry.Name] = string(file)
	}
	return files
}
