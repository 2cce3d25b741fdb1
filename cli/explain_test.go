package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/cli/explain"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
)

// data is the path of a file of these tests.
func data(name string) string { return filepath.Join("testdata", "explain", name) }

func TestExplainGolden(t *testing.T) {
	cluster := data("cluster.yaml")
	file := func(name string, more ...string) []string {
		return append([]string{"explain", "-f", data(name), "--state", cluster}, more...)
	}
	pod := func(name string, more ...string) []string {
		return append([]string{"explain", name, "-n", "team-a", "--state", cluster}, more...)
	}
	for name, args := range map[string][]string{
		"job":             file("job.yaml"),
		"job-wide":        file("job.yaml", "-o", "wide"),
		"job-all":         file("job.yaml", "--all"),
		"job-json":        file("job.yaml", "-o", "json"),
		"job-yaml":        file("job.yaml", "-o", "yaml"),
		"late":            file("job-large.yaml"),
		"not-opted-in":    file("job-elsewhere.yaml"),
		"spread":          file("spread.yaml", "-n", "team-a"),
		"user-preference": file("preference.yaml"),
		"no-gpu":          file("no-gpu.yaml"),
		"many":            {"explain", "-f", data("job.yaml"), "--state", data("many.yaml")},
		"on-target":       pod("train-0"),
		"on-target-wide":  pod("pod/train-0", "-o", "wide"),
		"on-target-json":  pod("train-0", "-o", "json"),
		"on-listed":       pod("train-1"),
		"on-other":        pod("train-2"),
		"waiting":         pod("waiting-0"),
		"unsteered":       {"explain", "other-0", "-n", "team-b", "--state", cluster},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("explain", name+".golden"), out)
			if !slices.Contains(args, "wide") && !slices.Contains(args, "json") && !slices.Contains(args, "yaml") {
				within(t, out)
			}
		})
	}
}

// The prediction is for the pod with the patch: the target has the most points.
func TestPredictionFollowsPatch(t *testing.T) {
	out, err := execute(t, "explain", "-f", data("job.yaml"), "--state", data("cluster.yaml"), "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var e explain.Explanation
	if err := json.Unmarshal([]byte(out), &e); err != nil {
		t.Fatal(err)
	}
	if e.Decision.Target == "" || !slices.Equal(e.Decision.Predicted, []string{e.Decision.Target}) {
		t.Errorf("target %q, predicted %v", e.Decision.Target, e.Decision.Predicted)
	}
	if len(e.Candidates) != 3 || e.Candidates[0].Points.NodeAffinity != 100 || e.Candidates[0].Weight != 100 {
		t.Errorf("candidates %+v", e.Candidates)
	}
	if len(e.Candidates)+len(e.LeftOut) != 8 {
		t.Errorf("%d candidates and %d left out of 8 nodes", len(e.Candidates), len(e.LeftOut))
	}
}

// Started as a plugin, the program says so in its usage texts.
func TestPluginName(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/local/bin/kubectl-gpu_binpacker": "kubectl gpu-binpacker explain -f job.yaml -o wide",
		"/bin/gpu-binpacker":                   "  gpu-binpacker explain -f job.yaml -o wide",
	} {
		root := newRoot()
		nameAfter(root, program)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{"explain", "--help"})
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		plugin := strings.Contains(out.String(), "kubectl gpu-binpacker explain [POD] [flags]")
		if !strings.Contains(out.String(), want) || plugin != strings.HasPrefix(want, "kubectl") {
			t.Errorf("%s: no %q in\n%s", program, want, out.String())
		}
	}
}

// What the configuration switches off is said, and is not in the patch.
func TestExplainConfiguration(t *testing.T) {
	for name, tc := range map[string]struct {
		configuration, file string
		steering            string
		text                string
		inSpec              bool
	}{
		"steer":             {"mode: Enforce", "job.yaml", config.SteeringRanked, "steered to gpu-1", true},
		"dry run":           {"mode: DryRun", "job.yaml", config.SteeringDryRun, "it would be steered to gpu-1", false},
		"dry run, late":     {"mode: DryRun", "job-large.yaml", config.SteeringDryRun, "it would get late steering", false},
		"late":              {"mode: Enforce", "job-large.yaml", config.SteeringLate, "late steering", true},
		"late switched off": {"lateSteering: {mode: \"Off\"}", "job-large.yaml", webhook.SteeringNone, "no node can take it now", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, "apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\n"+tc.configuration+"\n")
			out, err := execute(t, "explain", "-f", data(tc.file), "--state", data("cluster.yaml"), "--config", path, "-o", "json")
			if err != nil {
				t.Fatal(err)
			}
			var e explain.Explanation
			if err := json.Unmarshal([]byte(out), &e); err != nil {
				t.Fatal(err)
			}
			inSpec := slices.ContainsFunc(e.Patch, func(op json.RawMessage) bool { return bytes.Contains(op, []byte(`"/spec/`)) })
			if d := e.Decision; d.Steering != tc.steering || !strings.Contains(d.Text, tc.text) || inSpec != tc.inSpec {
				t.Errorf("decision %+v, patch of the spec: %v", d, inSpec)
			}
		})
	}
}

// YAML and JSON say the same.
func TestExplainYAML(t *testing.T) {
	args := []string{"explain", "-f", data("job.yaml"), "--state", data("cluster.yaml"), "-o"}
	asJSON, err := execute(t, append(args, "json")...)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := execute(t, append(args, "yaml")...)
	if err != nil {
		t.Fatal(err)
	}
	converted, err := yaml.YAMLToJSON([]byte(asYAML))
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := json.Unmarshal([]byte(asJSON), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(converted, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("(-JSON +YAML):\n%s", diff)
	}
}

// The example comes with a pod, and its own pods can be named too.
func TestExplainExample(t *testing.T) {
	out, err := execute(t, "explain", "--example")
	if err != nil || !strings.Contains(out, "steered to gpu-") || !strings.Contains(out, "vision/classifier-*") {
		t.Errorf("%v:\n%s", err, out)
	}
	pod := state.Example().Pods[0]
	out, err = execute(t, "explain", "--example", pod.Name, "-n", pod.Namespace)
	if err != nil || !strings.Contains(out, pod.Namespace+"/"+pod.Name) {
		t.Errorf("%v:\n%s", err, out)
	}
}
