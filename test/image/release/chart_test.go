package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestChart(t *testing.T) {
	folder := t.TempDir()
	image := "ghcr.io/gpu-binpacker/gpu-binpacker:v0.1.0@" + digest
	out, err := release(t, "chart", "-version", "v0.1.0", "-image", image, "-chart", filepath.Join("testdata", "chart"), "-output", folder)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "gpu-binpacker-0.1.0.tgz")
	if strings.TrimSpace(out) != file {
		t.Errorf("printed %q", out)
	}
	want := map[string]string{
		"-rw-r--r-- gpu-binpacker/Chart.yaml": `apiVersion: v2
name: gpu-binpacker
# The number of this chart.
version: "0.1.0"
appVersion: "v0.1.0" # that of the binary
`,
		"-rw-r--r-- gpu-binpacker/values.yaml": `# -- Replicas.
replicas: 2
sidecar:
  digest: not this one
image:
  # -- Where the image is.
  repository: "ghcr.io/gpu-binpacker/gpu-binpacker"
  tag: "v0.1.0"

  # -- Takes precedence over the tag.
  digest: "` + digest + `" # sha256:...
metrics:
  tag: nor this one
`,
		"-rw-r--r-- gpu-binpacker/templates/deployment.yaml": "{{ .Values.image.digest }}\n",
	}
	if diff := cmp.Diff(want, untar(t, read(t, file))); diff != "" {
		t.Errorf("package (-want +got):\n%s", diff)
	}
}

// The chart of this repository, which may be written in another way one day.
func TestChartOfTheRepository(t *testing.T) {
	folder := t.TempDir()
	image := "ghcr.io/gpu-binpacker/gpu-binpacker:v1.2.3@" + digest
	if _, err := release(t, "chart", "-version", "v1.2.3", "-image", image, "-chart", filepath.Join(repository, "config", "helm", "gpu-binpacker"), "-output", folder); err != nil {
		t.Fatal(err)
	}
	files := untar(t, read(t, filepath.Join(folder, "gpu-binpacker-1.2.3.tgz")))
	var values struct {
		Image struct{ Repository, Tag, Digest string }
	}
	if err := yaml.Unmarshal([]byte(files["-rw-r--r-- gpu-binpacker/values.yaml"]), &values); err != nil {
		t.Fatal(err)
	}
	if got := values.Image.Repository + ":" + values.Image.Tag + "@" + values.Image.Digest; got != image {
		t.Errorf("image %s, want %s", got, image)
	}
	var templates strings.Builder
	for name, content := range files {
		if strings.Contains(name, "/templates/") {
			templates.WriteString(content)
		}
	}
	if !strings.Contains(templates.String(), ".digest") {
		t.Error("no template uses image.digest")
	}
}

// A chart that cannot be given the digest must not be released without it.
func TestSetting(t *testing.T) {
	key := []string{"image", "digest"}
	for name, tc := range map[string]struct {
		file string
		want string
	}{
		"elsewhere": {"sidecar:\n  digest: ''\n", "0 lines"},
		"twice":     {"image:\n  digest: ''\n  more:\n    digest: ''\n", "2 lines"},
		"deeper":    {"image:\n  more:\n    digest: ''\n", "after it was set"},
		"on a line": {"image: {digest: ''}\n", "0 lines"},
		"commented": {"image:\n  # digest: ''\n", "0 lines"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := (setting{key, digest}).apply([]byte(tc.file)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q; got\n%s", err, tc.want, got)
			}
		})
	}
}
