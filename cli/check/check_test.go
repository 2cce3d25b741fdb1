package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// Nothing is wrong with a healthy cluster, before and after the installation.
func TestHealthy(t *testing.T) {
	for name, pre := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			b := healthy(t)
			b.options.Pre = pre
			for _, result := range Run(t.Context(), b.clients(t)).Results {
				if result.Level != OK || result.Message == "" || len(result.Fix) > 0 {
					t.Errorf("%s %s: %s %v", result.Code, result.Level, result.Message, result.Fix)
				}
			}
		})
	}
}

// Each code fails in a test, passes in one, and is explained once.
func TestEveryCodeIsTestedAndExplained(t *testing.T) {
	raised := map[string]bool{}
	for _, cases := range allCases() {
		for _, tc := range cases {
			raised[tc.code] = raised[tc.code] || tc.level == Failure || tc.level == Warning
		}
	}
	var codes []string
	for _, c := range checks() {
		codes = append(codes, c.code)
		if !raised[c.code] {
			t.Errorf("%s fails in no test", c.code)
		}
		if groups[c.code[2]] == "" {
			t.Errorf("%s has no group", c.code)
		}
	}
	if !slices.IsSorted(codes) {
		t.Errorf("codes are not in order: %v", codes)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "checks.md"))
	if err != nil {
		t.Fatal(err)
	}
	var explained []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (GB\d+)$`).FindAllSubmatch(page, -1) {
		explained = append(explained, string(heading[1]))
	}
	if diff := cmp.Diff(codes, explained); diff != "" {
		t.Errorf("codes (-) and sections of docs/checks.md (+) differ:\n%s", diff)
	}
}

// Somebody who may read nothing learns what it needs, and nothing fails.
func TestForbidden(t *testing.T) {
	for name, pre := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			b := healthy(t)
			b.options.Pre, b.denied, b.metricsErr = pre, map[string]bool{"*": true}, forbidden()
			if !pre {
				b.cfgErr = forbidden()
			}
			skipped := 0
			for _, result := range Run(t.Context(), b.clients(t)).Results {
				if result.Code == "GB104" && result.Level == Failure {
					continue // that is what it is about
				}
				if result.Level == Failure || result.Level == Warning {
					t.Errorf("%s %s: %s", result.Code, result.Level, result.Message)
				}
				if result.Level == Skipped && strings.Contains(result.Message, "needs permission") {
					skipped++
				}
			}
			if skipped < 5 {
				t.Errorf("%d are skipped for want of permissions", skipped)
			}
		})
	}
}

// What could not be read for another reason is a failure that says so.
func TestUnreadable(t *testing.T) {
	b := healthy(t)
	b.broken = map[string]bool{"list nodes": true}
	got := find(t, Run(t.Context(), b.clients(t)), "GB403")
	if got.Level != Failure || got.Message != "cannot list nodes: connection refused" {
		t.Errorf("%s: %s", got.Level, got.Message)
	}
}

// Failing checks are repeated until they pass; others are not.
func TestWait(t *testing.T) {
	b := healthy(t)
	tries := 0
	b.trial = func(pod *corev1.Pod) error {
		if tries++; tries == 3 {
			pod.Annotations = map[string]string{config.AnnotationSteering: config.SteeringRanked}
		}
		return nil
	}
	var progress bytes.Buffer
	b.options.Wait, b.options.Interval, b.options.Progress = time.Minute, time.Millisecond, &progress
	report := Run(t.Context(), b.clients(t))
	if got := find(t, report, "GB308"); got.Level != OK || tries != 3 {
		t.Errorf("after %d tries %s: %s", tries, got.Level, got.Message)
	}
	if lines := strings.Count(progress.String(), "waiting for GB308, "); lines != 2 {
		t.Errorf("progress %q", progress.String())
	}
}

func TestWaitEnds(t *testing.T) {
	b := healthy(t)
	b.hook = nil
	b.options.Wait, b.options.Interval = 20*time.Millisecond, time.Millisecond
	report := Run(t.Context(), b.clients(t))
	if got := find(t, report, "GB301"); got.Level != Failure {
		t.Errorf("%s: %s", got.Level, got.Message)
	}
	// A check that was skipped because of it is looked at again, too.
	if got := find(t, report, "GB302"); got.Message != "needs GB301" {
		t.Errorf("%s: %s", got.Level, got.Message)
	}
}

// unhealthy is a cluster with results of all levels.
func unhealthy(t *testing.T) *bed {
	b := healthy(t)
	b.version, b.cfg.Scheduler.KubernetesVersion = "v1.35.4", "1.37"
	b.webhook().ClientConfig.CABundle = nil
	b.ours().Status.ReadyReplicas = 0
	b.metricsErr = forbidden()
	b.judge = func(pod *corev1.Pod) error {
		if !asksForGPU(pod, b.cfg.Resources) {
			return nil
		}
		return errors.New(`pods "check" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: 8, limited: 8`)
	}
	b.namespace("kube-system", "true")
	b.node("npu-1", map[string]string{"example.com/npu": "8"})
	b.pod("npu-0", "example.com/npu")
	b.policy("kube-system", "descheduler-policy-configmap", preferredPolicy+enabledPlugin, nil)
	return b
}

func TestTable(t *testing.T) {
	for name, tc := range map[string]struct {
		bed   *bed
		style terminal.Screen
	}{
		"healthy.txt":         {healthy(t), terminal.Screen{Unicode: true}},
		"unhealthy.txt":       {unhealthy(t), terminal.Screen{Unicode: true}},
		"unhealthy-ascii.txt": {unhealthy(t), terminal.Screen{}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Run(t.Context(), tc.bed.clients(t)).Table(&out, tc.style); err != nil {
				t.Fatal(err)
			}
			golden(t, name, out.Bytes())
			for line := range strings.Lines(out.String()) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > terminal.Columns {
					t.Errorf("%d columns: %s", n, line)
				}
				if line = strings.TrimSuffix(line, "\n"); line != strings.TrimRight(line, " ") {
					t.Errorf("blanks at the end of %q", line)
				}
			}
			if !tc.style.Unicode && strings.ContainsFunc(out.String(), func(r rune) bool { return r > 126 }) {
				t.Error("not ASCII")
			}
		})
	}
}

func TestColors(t *testing.T) {
	report := Report{Results: []Result{{Code: "GB101", Group: "Kubernetes", Title: "title", Level: Failure, Message: "message"}}}
	var plain, colored bytes.Buffer
	if err := errors.Join(report.Table(&plain, terminal.Screen{}), report.Table(&colored, terminal.Screen{Colour: true})); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(colored.String(), "\x1b[31mFAIL\x1b[0m") || strings.Contains(plain.String(), "\x1b") {
		t.Errorf("%q and %q", plain.String(), colored.String())
	}
}

func TestJSON(t *testing.T) {
	out, err := json.MarshalIndent(Run(t.Context(), unhealthy(t).clients(t)), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "unhealthy.json", append(out, '\n'))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-) differs (+), write it with -update:\n%s", path, diff)
	}
}
