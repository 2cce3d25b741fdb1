package observability

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	rulesFile = "config/prometheus/prometheusrule.yaml"
	testsFile = "config/prometheus/prometheusrule_test.yaml"
	runbooks  = "docs/runbooks.md"
	// runbookURL is followed by the anchor of the alert's section.
	runbookURL = "https://github.com/gpu-binpacker/gpu-binpacker/blob/main/" + runbooks + "#"
)

// prometheusRule has the fields of a PrometheusRule that ours uses, as the
// Prometheus Operator defines them (monitoring.coreos.com/v1).
type prometheusRule struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func decodedRule(t *testing.T) prometheusRule {
	t.Helper()
	var rule prometheusRule
	if err := yaml.UnmarshalStrict([]byte(read(t, rulesFile)), &rule); err != nil {
		t.Fatalf("%s: %v", rulesFile, err)
	}
	if rule.APIVersion != "monitoring.coreos.com/v1" || rule.Kind != "PrometheusRule" {
		t.Fatalf("%s is a %s of %s", rulesFile, rule.Kind, rule.APIVersion)
	}
	return rule
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var all []alert
	for _, group := range decodedRule(t).Spec.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) < 10 {
		t.Fatalf("found %d alerts", len(all))
	}
	return all
}

func TestAlerts(t *testing.T) {
	all := known(t)
	for _, a := range alerts(t) {
		t.Run(a.Alert, func(t *testing.T) {
			for _, problem := range problems(a.Expr, all) {
				t.Error(problem)
			}
			if a.For == "" {
				t.Error("no for")
			}
			if !slices.Contains([]string{"info", "warning", "critical"}, a.Labels["severity"]) {
				t.Errorf("severity %q", a.Labels["severity"])
			}
			for _, name := range []string{"summary", "description"} {
				if text := a.Annotations[name]; len(text) < 15 || !strings.HasSuffix(text, ".") {
					t.Errorf("%s %q is no sentence", name, text)
				}
			}
			if want := runbookURL + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
				t.Errorf("runbook_url %q, want %q", a.Annotations["runbook_url"], want)
			}
		})
	}
}

var (
	sections = regexp.MustCompile(`(?m)^## (.+)$`)
	parts    = regexp.MustCompile(`(?m)^\*\*([A-Z][a-z]+)\.\*\* (.{20,})$`)
)

// Every alert has its section with the four parts, and every section its alert, in
// the same order.
func TestRunbooks(t *testing.T) {
	text := read(t, runbooks)
	var headings, want []string
	for _, a := range alerts(t) {
		want = append(want, a.Alert)
	}
	starts := sections.FindAllStringSubmatchIndex(text, -1)
	for i, start := range starts {
		heading, end := text[start[2]:start[3]], len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		headings = append(headings, heading)
		var found []string
		for _, match := range parts.FindAllStringSubmatch(text[start[1]:end], -1) {
			found = append(found, match[1])
		}
		if diff := cmp.Diff([]string{"Meaning", "Impact", "Diagnosis", "Mitigation"}, found); diff != "" {
			t.Errorf("parts of %s (-want +got):\n%s", heading, diff)
		}
	}
	if diff := cmp.Diff(want, headings); diff != "" {
		t.Errorf("sections of %s (-alerts +sections):\n%s", runbooks, diff)
	}
}

// The rules' unit tests, run by promtool itself.
func TestAlertsFire(t *testing.T) {
	folder := rulesFolder(t)
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(folder, "rules.yaml"))
	promtool(t, "test", "rules", filepath.Join(folder, "tests.yaml"))
}

// A unit test that cannot fail proves nothing: with thresholds that are never
// reached, none of the firing cases may pass.
func TestUnitTestsOfAlertsCanFail(t *testing.T) {
	folder := rulesFolder(t)
	rules := filepath.Join(folder, "rules.yaml")
	var spec struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	content, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, &spec); err != nil {
		t.Fatal(err)
	}
	for g := range spec.Groups {
		for r := range spec.Groups[g].Rules {
			spec.Groups[g].Rules[r].Expr = "vector(1) > 2"
		}
	}
	write(t, rules, spec)
	out, err := promtoolCommand(t, "test", "rules", filepath.Join(folder, "tests.yaml")).CombinedOutput()
	if err == nil {
		t.Fatal("the unit tests pass with alerts that never fire")
	}
	for _, a := range alerts(t) {
		if !strings.Contains(string(out), `"`+a.Alert+`"`) && !strings.Contains(string(out), `\"`+a.Alert+`\"`) {
			t.Errorf("no unit test notices that %s never fires:\n%s", a.Alert, out)
		}
	}
}

// ruleTests has the fields of promtool's format that say what is tested.
type ruleTests struct {
	Tests []struct {
		Name  string `json:"name"`
		Exprs []struct {
			Expr    string `json:"expr"`
			Samples []struct {
				Labels string `json:"labels"`
			} `json:"exp_samples"`
		} `json:"promql_expr_test"`
	} `json:"tests"`
}

var firing = regexp.MustCompile(`^ALERTS\{alertname="(\w+)",alertstate="firing"\}$`)

// Every alert has a case in which it fires and one in which it does not.
func TestAlertsHaveUnitTests(t *testing.T) {
	var tests ruleTests
	if err := yaml.Unmarshal([]byte(read(t, testsFile)), &tests); err != nil {
		t.Fatal(err)
	}
	type cases struct{ fires, quiet bool }
	covered := map[string]cases{}
	for _, test := range tests.Tests {
		for _, e := range test.Exprs {
			match := firing.FindStringSubmatch(e.Expr)
			if match == nil {
				t.Errorf("%s: %s is about no alert", test.Name, e.Expr)
				continue
			}
			c := covered[match[1]]
			c.fires = c.fires || len(e.Samples) > 0
			c.quiet = c.quiet || len(e.Samples) == 0
			covered[match[1]] = c
		}
	}
	for _, a := range alerts(t) {
		if c := covered[a.Alert]; !c.fires || !c.quiet {
			t.Errorf("unit tests of %s: fires %v, does not %v", a.Alert, c.fires, c.quiet)
		}
		delete(covered, a.Alert)
	}
	for name := range covered {
		t.Errorf("unit tests of %s, which does not exist", name)
	}
}

// rulesFolder returns a folder with the rules as Prometheus reads them, rules.yaml,
// and their unit tests, tests.yaml.
func rulesFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "rules.yaml"), decodedRule(t).Spec)
	if err := os.WriteFile(filepath.Join(folder, "tests.yaml"), []byte(read(t, testsFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func write(t *testing.T, path string, value any) {
	t.Helper()
	encoded, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
}

// promtool runs promtool, which must succeed.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := promtoolCommand(t, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// promtoolCommand is the version pinned in go.mod, without service discovery, of
// which it needs none and which is most of what there is to build.
func promtoolCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{"run", "-tags=remove_all_sd", "github.com/prometheus/prometheus/cmd/promtool"}, args...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	return cmd
}
