package programs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// upstream is like the go.mod of Kubernetes, only shorter.
const upstream = `module k8s.io/kubernetes

go 1.24.0

godebug default=go1.24

require (
	github.com/spf13/cobra v1.9.1
	k8s.io/api v0.0.0
	k8s.io/cri-client v0.0.0
)

replace (
	example.com/forked => example.com/fork v1.2.3
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/cri-client => ./staging/src/k8s.io/cri-client
)
`

func TestGenerateModule(t *testing.T) {
	tests := map[string]struct{ version, want string }{
		"release": {"v1.34.4", `module programs

go 1.24.0

godebug default=go1.24

require k8s.io/kubernetes v1.34.4

replace example.com/forked => example.com/fork v1.2.3

replace k8s.io/api => k8s.io/api v0.34.4

replace k8s.io/cri-client => k8s.io/cri-client v0.34.4
`},
		"pre-release": {"v1.38.0-beta.0", `module programs

go 1.24.0

godebug default=go1.24

require k8s.io/kubernetes v1.38.0-beta.0

replace example.com/forked => example.com/fork v1.2.3

replace k8s.io/api => k8s.io/api v0.38.0-beta.0

replace k8s.io/cri-client => k8s.io/cri-client v0.38.0-beta.0
`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			module, err := kubernetesSet{version: tc.version}.generateModule([]byte(upstream))
			if err != nil {
				t.Fatal(err)
			}
			got, err := module.Format()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("go.mod (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGenerateModuleNeedsAGoLine(t *testing.T) {
	for _, text := range []string{"module k8s.io/kubernetes\n", "no go.mod"} {
		if _, err := (kubernetesSet{version: "v1.34.4"}).generateModule([]byte(text)); err == nil {
			t.Errorf("a module was generated from %q", text)
		}
	}
}

// A generated module is kept as the go command has completed it, but not one of
// another version or one that is damaged.
func TestReadModule(t *testing.T) {
	const completed = "module programs\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v1.34.4\n\nrequire example.com/more v1.0.0 // indirect\n"
	for name, tc := range map[string]struct {
		content string
		want    bool
	}{
		"completed":       {completed, true},
		"another version": {"module programs\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v1.34.3\n", false},
		"half":            {completed[:60], false},
		"empty":           {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(tc.content), 0o644); err != nil {
				t.Fatal(err)
			}
			module, err := kubernetesSet{version: "v1.34.4"}.readModule(dir)
			if got := module != nil; got != tc.want || err != nil {
				t.Errorf("kept: %v, %v, want %v", got, err, tc.want)
			}
		})
	}
	if module, err := (kubernetesSet{version: "v1.34.4"}).readModule(t.TempDir()); module != nil || err != nil {
		t.Errorf("an empty folder has module %v, %v", module, err)
	}
}

func TestToolchainFor(t *testing.T) {
	for name, tc := range map[string]struct {
		goLine, ours string
		want         []string
	}{
		"older":            {"1.24.0", "go1.26.8", nil},
		"the same":         {"1.26.8", "go1.26.8", nil},
		"newer":            {"1.27.1", "go1.26.8", []string{"GOTOOLCHAIN=go1.27.1+auto"}},
		"language version": {"1.27", "go1.26.8", []string{"GOTOOLCHAIN=go1.27.0+auto"}},
		"pre-release":      {"1.27rc2", "go1.26.8", []string{"GOTOOLCHAIN=go1.27rc2+auto"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, toolchainFor(tc.goLine, tc.ours)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}
