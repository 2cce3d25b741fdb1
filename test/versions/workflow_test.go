package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// GitHub's workflow and .ci/run name versions themselves: a workflow cannot ask for
// the list without building what knows it.
func TestVersionsOfContinuousIntegration(t *testing.T) {
	want, err := programs.TestedKubernetes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", ".github", "workflows", "ci.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Strategy struct {
				Matrix map[string][]string `json:"matrix"`
			} `json:"strategy"`
		} `json:"jobs"`
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, workflow.Jobs["versions"].Strategy.Matrix["version"]); diff != "" {
		t.Errorf("matrix of the job versions in ci.yaml (-want +got):\n%s", diff)
	}
	if text, err = os.ReadFile(filepath.Join("..", "..", ".ci", "run")); err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`\bversion=([0-9.]+)`).FindSubmatch(text)
	if len(match) < 2 || !slices.Contains(want, string(match[1])) {
		t.Errorf(".ci/run tests Kubernetes %q, want one of %v", match, want)
	}
}

// The oldest and the newest version that the product names are those that are tested.
func TestVersionsOfTheProduct(t *testing.T) {
	tested, err := programs.TestedKubernetes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]config.MinorVersion{tested[0]: config.OldestVersion, tested[len(tested)-1]: config.NewestVersion} {
		if got, err := config.ParseServerVersion(version); err != nil || got != want {
			t.Errorf("%s is tested, and %s named (%v)", version, want, err)
		}
	}
}
