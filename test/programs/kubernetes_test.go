package programs

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/semver"
)

func TestParseKubernetesVersion(t *testing.T) {
	for text, want := range map[string]string{
		"1.34.4":        "v1.34.4",
		"v1.34.4":       "v1.34.4",
		"1.38.0-beta.0": "v1.38.0-beta.0",
	} {
		if got, err := ParseKubernetesVersion(text); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1.34", "v1", "1.34.x", "34", "2.0.0", "1.34.4+build", "1.34.4 ", "latest", "vv1.34.4"} {
		_, err := ParseKubernetesVersion(text)
		if err == nil || !strings.Contains(err.Error(), "for example 1.34.4") {
			t.Errorf("%q: error %v shows no example", text, err)
		}
	}
}

// A bad value is found before anything is built.
func TestBadKubernetesVariable(t *testing.T) {
	t.Setenv(KubernetesVariable, "1.34")
	_, err := Build(t.Context(), io.Discard)
	for _, want := range []string{KubernetesVariable, `"1.34"`, "for example 1.34.4"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not mention %s", err, want)
		}
	}
}

func TestTestedKubernetesIsAscending(t *testing.T) {
	versions, err := TestedKubernetes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range versions {
		if versions[i], err = ParseKubernetesVersion(versions[i]); err != nil {
			t.Error(err)
		}
	}
	if !slices.IsSortedFunc(versions, semver.Compare) {
		t.Errorf("%v is not ascending", versions)
	}
}

func TestKubernetesPrograms(t *testing.T) {
	tests := map[string]struct {
		set   kubernetesSet
		names []string
		flags []string
	}{
		"of go.mod": {
			set:   kubernetesSet{version: "v1.37.2", pinned: true},
			names: []string{"kube-scheduler", "kube-apiserver", "kube-controller-manager"},
		},
		"another": {
			set: kubernetesSet{version: "v1.34.4"},
			names: []string{
				"kubernetes/v1.34.4/kube-scheduler", "kubernetes/v1.34.4/kube-apiserver", "kubernetes/v1.34.4/kube-controller-manager",
			},
			flags: []string{"-mod=mod"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for i, program := range tc.set.programsOf("bin", "module", nil) {
				want := Program{
					Name: tc.names[i], Package: "k8s.io/kubernetes/cmd/" + filepath.Base(tc.names[i]), Version: tc.set.version,
					Dir: "module", Output: filepath.Join("bin", tc.names[i]), LinkerFlags: kubernetesLinkerFlags(tc.set.version),
					Flags: tc.flags,
				}
				if diff := cmp.Diff(want, program); diff != "" {
					t.Errorf("program %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// The programs of another version are taken from its folder, the rest from bin/.
func TestFindBinaries(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join("kubernetes", "v1.34.4")
	if err := os.MkdirAll(filepath.Join(dir, other), 0o755); err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{}
	for _, name := range []string{
		Etcd, Kwok, CertManager, other + "/" + APIServer, other + "/" + ControllerManager, other + "/" + KubeScheduler,
	} {
		paths[filepath.Base(name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, err := findBinaries(dir, other)
	if err != nil {
		t.Fatal(err)
	}
	want := Binaries{
		Etcd: paths[Etcd], APIServer: paths[APIServer], ControllerManager: paths[ControllerManager],
		Scheduler: paths[KubeScheduler], Kwok: paths[Kwok], CertManager: paths[CertManager],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("binaries (-want +got):\n%s", diff)
	}
	if _, err := findBinaries(dir, ""); err == nil {
		t.Error("found programs of the version of go.mod, which are not there")
	}
}

func TestKubernetesLinkerFlags(t *testing.T) {
	const pkg = "k8s.io/component-base/version"
	want := "-X " + pkg + ".gitVersion=v1.37.2 -X " + pkg + ".gitMajor=1 -X " + pkg + ".gitMinor=37"
	if got := kubernetesLinkerFlags("v1.37.2"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
