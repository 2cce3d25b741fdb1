package main

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// workflow is the part of a GitHub workflow that these tests look at.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Env         map[string]string `json:"env"`
		Steps       []step            `json:"steps"`
	} `json:"jobs"`
}

type step struct {
	Uses string            `json:"uses"`
	Run  string            `json:"run"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
}

func releaseWorkflow(t *testing.T) workflow {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal(read(t, filepath.Join(repository, ".github", "workflows", "release.yaml")), &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Jobs["release"].Steps) == 0 {
		t.Fatal("no job release with steps")
	}
	return w
}

func TestWorkflowPermissions(t *testing.T) {
	w := releaseWorkflow(t)
	if len(w.Permissions) != 0 {
		t.Errorf("permissions %v for every job, want none", w.Permissions)
	}
	want := map[string]string{"contents": "write", "packages": "write"}
	if diff := cmp.Diff(want, w.Jobs["release"].Permissions); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
	if len(w.Jobs) != 1 {
		t.Errorf("%d jobs, want release only", len(w.Jobs))
	}
}

var (
	targets = regexp.MustCompile(`\bmake ([a-z-]+)`)
	outputs = regexp.MustCompile(`\bbin/[a-z]+`)
	pinned  = regexp.MustCompile(`^actions/[a-z-]+@v\d+$`)
)

// No run of the workflow is needed to see a misspelt target.
func TestWorkflowSteps(t *testing.T) {
	makefile := string(read(t, filepath.Join(repository, "Makefile")))
	var made []string
	for _, s := range releaseWorkflow(t).Jobs["release"].Steps {
		if s.Uses != "" && !pinned.MatchString(s.Uses) {
			t.Errorf("%s is not an action of GitHub's, pinned by version", s.Uses)
		}
		if file, ok := s.With["go-version-file"].(string); ok {
			read(t, filepath.Join(repository, file))
		}
		for _, match := range targets.FindAllStringSubmatch(s.Run, -1) {
			made = append(made, match[1])
			if !strings.Contains(makefile, "\n"+match[1]+":") {
				t.Errorf("there is no target %s", match[1])
			}
		}
		for _, folder := range outputs.FindAllString(s.Run, -1) {
			if !strings.Contains(makefile, "$(OUTPUT)/"+strings.TrimPrefix(folder, "bin/")) {
				t.Errorf("the Makefile does not write %s", folder)
			}
		}
		checkScript(t, s.Run)
	}
	// Nothing is pushed before all files could be made.
	if want := []string{"test-unit", "image", "release-files", "push"}; !slices.Equal(made, want) {
		t.Errorf("targets in the order %v, want %v", made, want)
	}
}

// checkScript refuses expressions in scripts, where a tag's name would be run as
// a command, and what bash cannot parse.
func checkScript(t *testing.T, script string) {
	t.Helper()
	if strings.Contains(script, "${{") {
		t.Errorf("an expression in a script: %s", script)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-n")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("bash: %v: %s in\n%s", err, out, script)
	}
}

// The token goes to the steps that publish, to no other.
func TestWorkflowToken(t *testing.T) {
	w := releaseWorkflow(t)
	for _, s := range w.Jobs["release"].Steps {
		publishes := strings.Contains(s.Run, "docker login") || strings.Contains(s.Run, "gh release")
		_, token := s.Env["TOKEN"]
		_, ghToken := s.Env["GH_TOKEN"]
		if publishes != (token || ghToken) {
			t.Errorf("step %q has the environment %v", s.Run, slices.Sorted(maps.Keys(s.Env)))
		}
		if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
			t.Error("checkout leaves the token to every step")
		}
	}
	for _, value := range w.Jobs["release"].Env {
		if strings.Contains(value, "token") {
			t.Errorf("every step sees %s", value)
		}
	}
}

// The test's list of platforms is that of the Makefile.
func TestPlatformsOfTheMakefile(t *testing.T) {
	makefile := string(read(t, filepath.Join(repository, "Makefile")))
	value := func(name string) string {
		match := regexp.MustCompile(`(?m)^` + name + ` \?= (.*)$`).FindStringSubmatch(makefile)
		if match == nil {
			t.Fatalf("the Makefile does not set %s", name)
		}
		return match[1]
	}
	all := strings.ReplaceAll(value("PLUGIN_PLATFORMS"), "$(IMAGE_PLATFORMS)", value("IMAGE_PLATFORMS"))
	if diff := cmp.Diff(platforms, strings.Fields(all)); diff != "" {
		t.Errorf("platforms (-test +Makefile):\n%s", diff)
	}
}
