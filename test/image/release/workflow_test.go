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
	Jobs        map[string]job    `json:"jobs"`
}

type job struct {
	Needs       any               `json:"needs"` // a name or a list of them
	Permissions map[string]string `json:"permissions"`
	Env         map[string]string `json:"env"`
	Outputs     map[string]string `json:"outputs"`
	Steps       []step            `json:"steps"`
}

type step struct {
	ID   string            `json:"id"`
	Uses string            `json:"uses"`
	Run  string            `json:"run"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
}

// stages are the jobs of a release in their order.
var stages = []string{"build", "image", "release"}

func readWorkflow(t *testing.T, path string) workflow {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal(read(t, path), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

func releaseWorkflow(t *testing.T) workflow {
	t.Helper()
	w := readWorkflow(t, filepath.Join(repository, ".github", "workflows", "release.yaml"))
	if got := slices.Sorted(maps.Keys(w.Jobs)); !slices.Equal(got, stages) {
		t.Fatalf("jobs %v, want %v", got, stages)
	}
	return w
}

func allWorkflows(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, ".github", "workflows", "*.y*ml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("workflows %v, %v", files, err)
	}
	return files
}

// A job has the rights that it needs, and those that run the code of all modules may
// write nothing.
func TestWorkflowPermissions(t *testing.T) {
	w := releaseWorkflow(t)
	if len(w.Permissions) != 0 {
		t.Errorf("permissions %v for every job, want none", w.Permissions)
	}
	want := map[string]map[string]string{
		"build":   {"contents": "read"},
		"image":   {"contents": "read", "packages": "write", "id-token": "write", "attestations": "write"},
		"release": {"contents": "write", "id-token": "write", "attestations": "write"},
	}
	for name, permissions := range want {
		if diff := cmp.Diff(permissions, w.Jobs[name].Permissions); diff != "" {
			t.Errorf("permissions of %s (-want +got):\n%s", name, diff)
		}
	}
	for _, path := range allWorkflows(t) {
		w := readWorkflow(t, path)
		if w.Permissions == nil {
			t.Errorf("%s leaves the default permissions, which may be all", path)
		}
		for right, access := range w.Permissions {
			if access != "read" {
				t.Errorf("%s: every job may %s %s", path, access, right)
			}
		}
	}
}

var (
	targets = regexp.MustCompile(`\bmake ([a-z-]+)`)
	outputs = regexp.MustCompile(`\bbin/[a-z]+`)
	uses    = regexp.MustCompile(`(?m)^\s*(?:- )?uses:(.*)$`)
	// pinned is an action by commit, with its version for people and for dependabot.
	pinned = regexp.MustCompile(`^ ((?:actions|sigstore)/[a-z-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+$`)
)

// A tag of an action can be moved to other code, a commit cannot.
func TestWorkflowActionsArePinned(t *testing.T) {
	commits, found := map[string]string{}, 0
	for _, path := range allWorkflows(t) {
		for _, line := range uses.FindAllStringSubmatch(string(read(t, path)), -1) {
			found++
			action := pinned.FindStringSubmatch(line[1])
			if action == nil {
				t.Errorf("%s:%s is not pinned by commit with its version behind", path, line[1])
				continue
			}
			if commit, ok := commits[action[1]]; ok && commit != action[2] {
				t.Errorf("%s is pinned to two commits", action[1])
			}
			commits[action[1]] = action[2]
		}
	}
	if found < 20 {
		t.Errorf("%d actions found", found)
	}
}

// No run of the workflow is needed to see a misspelt target, or a job that begins too
// early.
func TestWorkflowSteps(t *testing.T) {
	makefile, w := string(read(t, filepath.Join(repository, "Makefile"))), releaseWorkflow(t)
	var made []string
	for _, name := range stages {
		for _, s := range w.Jobs[name].Steps {
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
	}
	// Nothing is pushed before all files could be made.
	if want := []string{"test-unit", "image", "release-files", "push"}; !slices.Equal(made, want) {
		t.Errorf("targets in the order %v, want %v", made, want)
	}
	if diff := cmp.Diff([]any{nil, "build", []any{"build", "image"}}, []any{w.Jobs["build"].Needs, w.Jobs["image"].Needs, w.Jobs["release"].Needs}); diff != "" {
		t.Errorf("what the jobs wait for (-want +got):\n%s", diff)
	}
}

// The job that may write to the repository runs nothing of it: neither its code nor that
// of its modules.
func TestWorkflowReleasesWithoutCode(t *testing.T) {
	for _, s := range releaseWorkflow(t).Jobs["release"].Steps {
		if strings.HasPrefix(s.Uses, "actions/checkout@") || strings.HasPrefix(s.Uses, "actions/setup-go@") || strings.Contains(s.Run, "make ") {
			t.Errorf("step %s%s", s.Uses, s.Run)
		}
	}
}

// What one job hands to another exists.
func TestWorkflowOutputs(t *testing.T) {
	w := releaseWorkflow(t)
	ids := map[string]bool{}
	for _, s := range w.Jobs["build"].Steps {
		ids[s.ID] = true
	}
	reference := regexp.MustCompile(`\bsteps\.([a-z]+)\.outputs\.`)
	for name, value := range w.Jobs["build"].Outputs {
		match := reference.FindStringSubmatch(value)
		if len(match) != 2 || !ids[match[1]] {
			t.Errorf("output %s is %s, of no step", name, value)
		}
	}
	needed := regexp.MustCompile(`\bneeds\.build\.outputs\.([a-z]+)`)
	text := string(read(t, filepath.Join(repository, ".github", "workflows", "release.yaml")))
	for _, match := range needed.FindAllStringSubmatch(text, -1) {
		if _, ok := w.Jobs["build"].Outputs[match[1]]; !ok {
			t.Errorf("there is no output %s", match[1])
		}
	}
}

// Image and files are signed and have their provenance, before the release is there.
func TestWorkflowSigns(t *testing.T) {
	w := releaseWorkflow(t)
	for name, want := range map[string][]string{
		"image":   {"sigstore/cosign-installer@", "make push", "cosign sign --yes", "actions/attest@"},
		"release": {"sigstore/cosign-installer@", "cosign sign-blob --yes", "actions/attest@", "gh release create"},
	} {
		next := 0
		for _, s := range w.Jobs[name].Steps {
			if next < len(want) && (strings.HasPrefix(s.Uses, want[next]) || strings.Contains(s.Run, want[next])) {
				next++
			}
		}
		if next < len(want) {
			t.Errorf("job %s lacks %s, or has it too late", name, want[next])
		}
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
	for name, job := range releaseWorkflow(t).Jobs {
		for _, s := range job.Steps {
			publishes := strings.Contains(s.Run, "docker login") || strings.Contains(s.Run, "gh release")
			_, token := s.Env["TOKEN"]
			_, ghToken := s.Env["GH_TOKEN"]
			if publishes != (token || ghToken) {
				t.Errorf("%s: step %q has the environment %v", name, s.Run, slices.Sorted(maps.Keys(s.Env)))
			}
			if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
				t.Errorf("%s: checkout leaves the token to every step", name)
			}
		}
		for _, value := range job.Env {
			if strings.Contains(value, "token") {
				t.Errorf("%s: every step sees %s", name, value)
			}
		}
	}
}

// Every module and every folder with something pinned is looked after.
func TestDependabot(t *testing.T) {
	var file struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directory   string   `json:"directory"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(repository, ".github", "dependabot.yml")), &file); err != nil {
		t.Fatal(err)
	}
	covered := map[string][]string{}
	for _, u := range file.Updates {
		covered[u.Ecosystem] = append(covered[u.Ecosystem], append(u.Directories, u.Directory)...)
	}
	for ecosystem, pattern := range map[string]string{"gomod": "go.mod", "npm": "package-lock.json", "docker": "Dockerfile"} {
		cmd := exec.CommandContext(t.Context(), "git", "ls-files", pattern, "*/"+pattern)
		cmd.Dir = repository
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(string(out)) {
			if folder := "/" + strings.TrimPrefix(filepath.Dir(name), "."); !strings.Contains(name, "testdata") && !slices.Contains(covered[ecosystem], folder) {
				t.Errorf("dependabot does not look at %s", name)
			}
		}
	}
	if !slices.Contains(covered["github-actions"], "/") {
		t.Error("dependabot does not look at actions")
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
