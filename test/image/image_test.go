package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

var (
	repository = filepath.Join("..", "..")
	created    = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	amd64      = v1.Platform{OS: "linux", Architecture: "amd64"}
	arm64      = v1.Platform{OS: "linux", Architecture: "arm64"}
)

// programs are built once for all tests; each costs some seconds.
var programs sync.Map // GOARCH -> content

// program builds testdata/program for linux and returns its path.
func program(t *testing.T, architecture string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	content, ok := programs.Load(architecture)
	if !ok {
		run(t, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + architecture},
			"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=v0.0.1", "-o", path, "./testdata/program")
		built, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		content, _ = programs.LoadOrStore(architecture, built)
	}
	if err := os.WriteFile(path, content.([]byte), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a command and returns what it prints.
func run(t *testing.T, environment []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(cmd.Environ(), append(environment, "GOWORK=off")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %v: %v\n%s%s", cmd.Args, err, out, stderr.String())
	}
	return string(out)
}

// small are options with the small program.
func small(t *testing.T) options {
	t.Helper()
	return options{
		version: "v0.0.1", revision: "8d3e1c0", source: "https://example.com/source", created: created,
		binaries: []binary{{amd64, program(t, "amd64")}, {arm64, program(t, "arm64")}},
	}
}

// buildArchive runs the command as make image does and returns archive and digest.
func buildArchive(t *testing.T, o options) (archive, digest string) {
	t.Helper()
	dir := t.TempDir()
	archive = filepath.Join(dir, "image.tar")
	args := []string{"build", "-version", o.version, "-revision", o.revision, "-source", o.source,
		"-created", "1795953600", "-output", archive, "-digest", filepath.Join(dir, "image.digest")}
	for _, b := range o.binaries {
		args = append(args, b.platform.String()+"="+b.path)
	}
	var out bytes.Buffer
	if err := command(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(dir, "image.digest"))
	if err != nil {
		t.Fatal(err)
	}
	digest = strings.TrimSpace(string(written))
	if !strings.Contains(out.String(), digest) || !strings.Contains(out.String(), "linux/arm64") {
		t.Errorf("digest %s, printed %q", digest, out.String())
	}
	return archive, digest
}

func TestArchive(t *testing.T) {
	o := small(t)
	archive, digest := buildArchive(t, o)
	index, remove, err := readArchive(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	if got, err := index.Digest(); err != nil || got.String() != digest {
		t.Errorf("read back %s, %v, the file says %s", got, err, digest)
	}
	contents, err := check(index, []v1.Platform{amd64, arm64})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range contents {
		want, err := os.ReadFile(o.binaries[i].path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.binary, want) || c.unpacked != int64(len(want)) {
			t.Errorf("%s: the layer has other content than the binary", c.platform)
		}
		// All Go programs of this kind shrink to less than 60 % and more than 20 %.
		if share := float64(c.size) / float64(c.unpacked); share < 0.2 || share > 0.6 {
			t.Errorf("%s: %d bytes to pull of %d", c.platform, c.size, c.unpacked)
		}
	}
	checkConfiguration(t, index)
	if got := runBinary(t, contents); got != "v0.0.1\n" {
		t.Errorf("version prints %q", got)
	}
}

func checkConfiguration(t *testing.T, index v1.ImageIndex) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(manifest.Manifests[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	labels := maps.Clone(staticLabels)
	labels["org.opencontainers.image.version"] = "v0.0.1"
	labels["org.opencontainers.image.revision"] = "8d3e1c0"
	labels["org.opencontainers.image.source"] = "https://example.com/source"
	want := v1.Config{
		Entrypoint: []string{"/gpu-binpacker"}, Cmd: []string{"serve"}, User: "65532:65532",
		WorkingDir: "/", Env: []string{"PATH=/"}, Labels: labels,
	}
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if got.OS != "linux" || got.Architecture != "arm64" || !got.Created.Equal(created) || !got.History[0].Created.Equal(created) {
		t.Errorf("%s/%s of %s, history %v", got.OS, got.Architecture, got.Created, got.History)
	}
}

// runBinary runs the binary of this machine's image with the argument version.
func runBinary(t *testing.T, contents []content) string {
	t.Helper()
	host := slices.IndexFunc(contents, func(c content) bool { return c.platform == runtime.GOOS+"/"+runtime.GOARCH })
	if host < 0 {
		t.Skipf("no image for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	path := filepath.Join(t.TempDir(), "gpu-binpacker")
	if err := os.WriteFile(path, contents[host].binary, 0o755); err != nil {
		t.Fatal(err)
	}
	return run(t, nil, path, "version")
}

// The digest is in manifests and charts, so that anybody can check it by building.
func TestSameInputGivesSameBytes(t *testing.T) {
	first, digest := buildArchive(t, small(t))
	second, again := buildArchive(t, small(t))
	if digest != again {
		t.Errorf("digest %s, then %s", digest, again)
	}
	a, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("the archives differ")
	}
	other := small(t)
	other.version = "v0.0.2"
	if _, changed := buildArchive(t, other); changed == digest {
		t.Error("another version has the same digest")
	}
}

// Both recipes must give an image that the Deployment can run.
func TestDockerfileAgrees(t *testing.T) {
	dockerfile, err := os.ReadFile(filepath.Join(repository, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	joined := strings.ReplaceAll(string(dockerfile), "\\\n", " ")
	_, stage, found := strings.Cut(joined, "\nFROM gcr.io/")
	if !found {
		t.Fatal("no final stage")
	}
	got := map[string]string{}
	for line := range strings.Lines(stage) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[instruction] += strings.TrimSpace(rest)
	}
	array := func(words ...string) string {
		encoded, err := json.Marshal(words)
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	for instruction, want := range map[string]string{
		"USER": user, "ENTRYPOINT": array(entrypoint), "CMD": array(argument), "COPY": "--from=build " + entrypoint + " " + entrypoint,
	} {
		if got[instruction] != want {
			t.Errorf("%s %s, want %s", instruction, got[instruction], want)
		}
	}
	labels := map[string]string{}
	for _, match := range regexp.MustCompile(`([a-z.]+)="([^"]*)"`).FindAllStringSubmatch(got["LABEL"], -1) {
		labels[match[1]] = match[2]
	}
	if diff := cmp.Diff(staticLabels, labels); diff != "" {
		t.Errorf("labels (-ours +Dockerfile):\n%s", diff)
	}
}

func TestArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":        {nil, "build or push"},
		"no binary":      {[]string{"build"}, "linux/amd64=BINARY"},
		"no path":        {[]string{"build", "linux/amd64"}, "linux/ARCHITECTURE=BINARY"},
		"not linux":      {[]string{"build", "darwin/arm64=x"}, "linux/ARCHITECTURE=BINARY"},
		"no such binary": {[]string{"build", "linux/amd64=/no/such/file"}, "/no/such/file"},
		"no reference":   {[]string{"push"}, "REGISTRY/REPOSITORY:TAG"},
		// Not to be pushed to a registry that nobody named.
		"no registry": {[]string{"push", "gpu-binpacker:latest"}, "REGISTRY/REPOSITORY:TAG"},
		"no tag":      {[]string{"push", "registry.example.com/gpu-binpacker"}, "REGISTRY/REPOSITORY:TAG"},
		"no archive":  {[]string{"push", "-archive", "/no/such/file", "registry.example.com/a/b:c"}, "/no/such/file"},
	} {
		t.Run(name, func(t *testing.T) {
			err := command(t.Context(), tc.args, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
