package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/cli/report"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

// reportState writes a state file: two nodes with 8 GPUs and a pod with 2 on each.
func reportState(t *testing.T) string {
	t.Helper()
	var nodes []corev1.Node
	var pods []corev1.Pod
	for _, name := range []string{"acme-1", "acme-2"} {
		nodes = append(nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "pods": resource.MustParse("110")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
		gpus := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
		pods = append(pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "train-" + name, Namespace: "acme", UID: types.UID(fmt.Sprintf("uid-%d", len(pods)))},
			Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{
				Name: "c", Resources: corev1.ResourceRequirements{Requests: gpus, Limits: gpus}, Env: []corev1.EnvVar{{Name: "TOKEN", Value: "canary"}},
			}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		})
	}
	path := filepath.Join(t.TempDir(), "state.yaml")
	if err := state.New(time.Unix(1e9, 0), nil, nodes, pods).Save(path, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReportForms(t *testing.T) {
	path := reportState(t)
	for form, want := range map[string]string{
		"text":     "GPU pods are on 2 of 2 nodes",
		"markdown": "| occupied by GPU pods | 2 | 1 | 1 |",
		"html":     "<!doctype html>",
		"json":     `"simulation": true`,
	} {
		t.Run(form, func(t *testing.T) {
			out, err := execute(t, "report", "--state", path, "-o", form)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		})
	}
}

// A page can be written besides the text, and only its owner can read it.
func TestReportFiles(t *testing.T) {
	dir := t.TempDir()
	page, text := filepath.Join(dir, "report.html"), filepath.Join(dir, "report.txt")
	out, err := execute(t, "report", "--state", reportState(t), "--html", page, "--output-file", text, "--price", "2")
	if err != nil || out != "" {
		t.Fatalf("%q, %v", out, err)
	}
	// One node is free: 2 * 730 hours.
	for path, want := range map[string]string{page: "1,460.00", text: "1,460.00"} {
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: %v, without %s", path, err, want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: others can read it: %v, %v", path, info, err)
		}
	}
}

// A saved state gives the same report again; with hashed names no name is left in it.
func TestReportSaveState(t *testing.T) {
	path := reportState(t)
	saved, hashed := filepath.Join(t.TempDir(), "saved.yaml"), filepath.Join(t.TempDir(), "hashed.yaml")
	first, err := execute(t, "report", "--state", path, "-o", "json", "--save-state", saved)
	if err != nil {
		t.Fatal(err)
	}
	second, err := execute(t, "report", "--state", saved, "-o", "json", "--save-state", hashed, "--hash-names")
	if err != nil {
		t.Fatal(err)
	}
	var a, b report.Report
	for text, r := range map[string]*report.Report{first: &a, second: &b} {
		if err := json.Unmarshal([]byte(text), r); err != nil {
			t.Fatal(err)
		}
	}
	if a.Hashed || !b.Hashed || a.Scenarios[1].Figures.Occupied != 1 || b.Scenarios[1].Figures.Occupied != 1 {
		t.Errorf("%+v\n%+v", a.Scenarios[1].Figures, b.Scenarios[1].Figures)
	}
	content, err := os.ReadFile(hashed)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"acme", "canary", "train-"} {
		// Not in the report either, but for the path of the file that it is about.
		if strings.Contains(string(content), secret) || strings.Contains(strings.ReplaceAll(second, saved, ""), secret) {
			t.Errorf("%q is in the hashed state or its report", secret)
		}
	}
	if out, err := execute(t, "report", "--state", path, "--save-state", "-"); err != nil || !strings.HasPrefix(out, "apiVersion:") || strings.Contains(out, "simulation") {
		t.Errorf("%v: a state on standard output, and nothing else, is not\n%s", err, out)
	}
}

// The example needs no cluster and no file.
func TestReportExample(t *testing.T) {
	page := filepath.Join(t.TempDir(), "report.html")
	out, err := execute(t, "report", "--example", "--html", page)
	if err != nil || !strings.Contains(out, "of 303 nodes") || !strings.Contains(out, "the built-in example") {
		t.Errorf("%v:\n%s", err, out)
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "the built-in example") {
		t.Errorf("%v: the page does not say what it shows", err)
	}
}

func TestReportErrors(t *testing.T) {
	path := reportState(t)
	missing := path + ".missing"
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"form":              {[]string{"--state", path, "-o", "pdf"}, []string{"-o", `"pdf"`, "markdown"}},
		"price":             {[]string{"--state", path, "--price", "much"}, []string{"--price", `"much"`, "12.5"}},
		"negative price":    {[]string{"--state", path, "--price=-1"}, []string{"--price"}},
		"two prices":        {[]string{"--state", path, "--price", "1", "--price-label", "x"}, []string{"price", "price-label"}},
		"prices missing":    {[]string{"--state", path, "--prices", missing}, []string{"--prices", "no such file"}},
		"state missing":     {[]string{"--state", missing}, []string{"no such file"}},
		"one CSV file":      {[]string{"--nodes-csv", path}, []string{"nodes-csv", "pods-csv"}},
		"two inputs":        {[]string{"--state", path, "--nodes-csv", path, "--pods-csv", path}, []string{"state", "nodes-csv"}},
		"example and state": {[]string{"--state", path, "--example"}, []string{"state", "example"}},
		"example and CSV":   {[]string{"--nodes-csv", path, "--pods-csv", path, "--example"}, []string{"nodes-csv", "example"}},
		"CSV missing":       {[]string{"--nodes-csv", missing, "--pods-csv", missing}, []string{"no such file"}},
		"save CSV":          {[]string{"--nodes-csv", path, "--pods-csv", path, "--save-state", "x"}, []string{"save-state"}},
		"no cluster":        {[]string{"--kubeconfig", missing}, []string{"--kubeconfig", "--state", "--example"}},
		"argument":          {[]string{"now"}, []string{"now"}},
		"no such directory": {[]string{"--state", path, "--html", filepath.Join(missing, "x.html")}, []string{"--html", "no such file"}},
		"unwritable report": {[]string{"--state", path, "--output-file", filepath.Join(missing, "x")}, []string{"--output-file", "no such file"}},
		"unwritable state":  {[]string{"--state", path, "--save-state", filepath.Join(missing, "x")}, []string{"--save-state", "no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, append([]string{"report"}, tc.args...)...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

// Long steps say how far they are, now and then.
func TestProgressLines(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := progressLines{out: io.Writer(&out), now: func() time.Time { return now }, last: now}
	for done := range 5 {
		p.step("packing", done+1, 5)
		now = now.Add(progressInterval / 2)
	}
	// After 0, 1, 2, 3 and 4 seconds, a line every 2 seconds.
	if want := "packing: 3 of 5 pods\npacking: 5 of 5 pods\n"; out.String() != want {
		t.Errorf("%q, not %q", out.String(), want)
	}
}
