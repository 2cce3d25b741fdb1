package cli

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
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

// Every reason that a decision can have is explained in words.
func TestReasonTexts(t *testing.T) {
	reasons := slices.Concat(constants(t, "../scoring/reason.go", "Reason"), constants(t, "../webhook/eligibility.go", "Reason"))
	if len(reasons) < 20 {
		t.Fatalf("found only %d reasons in the sources", len(reasons))
	}
	for _, reason := range reasons {
		if text := reasonTexts[steering.Reason(reason)]; reason != "" && text == "" {
			t.Errorf("reason %s has no text", reason)
		}
	}
	nodes := constants(t, "../scoring/feasibility.go", "NodeReason")
	if len(nodes) < 10 {
		t.Fatalf("found only %d reasons of nodes in the sources", len(nodes))
	}
	// These depend on the pod; the others are states of a node.
	ofPods := []nodes.Reason{nodes.NoResource, nodes.Affinity, nodes.Tainted, nodes.Insufficient}
	for _, reason := range nodes {
		if _, ok := stateWords[nodes.Reason(reason)]; !ok && !slices.Contains(ofPods, nodes.Reason(reason)) {
			t.Errorf("node reason %q has no word", reason)
		}
	}
}

// constants returns the values of the string constants of a type in a file.
func constants(t *testing.T, path, kind string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !isType(spec.Type, kind) {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			t.Fatalf("%s: %s is no literal", path, spec.Names[0])
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
		return true
	})
	return values
}

// isType tells whether an expression is a type of that name, in any package.
func isType(expression ast.Expr, name string) bool {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name == name
	case *ast.SelectorExpr:
		return e.Sel.Name == name
	default:
		return false
	}
}

// The namespaces that are never called for are those of the shipped manifest.
func TestExcludedNamespaces(t *testing.T) {
	selector := webhookManifest(t).NamespaceSelector
	for _, r := range selector.MatchExpressions {
		if r.Key == corev1.LabelMetadataName && r.Operator == metav1.LabelSelectorOpNotIn {
			if !slices.Equal(r.Values, excludedNamespaces) {
				t.Errorf("the manifest excludes %v, explain knows %v", r.Values, excludedNamespaces)
			}
			return
		}
	}
	t.Errorf("the manifest excludes no namespace: %v", selector)
}

// The prediction is for the pod with the patch: the target has the most points.
func TestPredictionFollowsPatch(t *testing.T) {
	out, err := execute(t, "explain", "-f", data("job.yaml"), "--state", data("cluster.yaml"), "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var e Explanation
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
			var e Explanation
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
