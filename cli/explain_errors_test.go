package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// webhookManifest returns the webhook of the shipped manifest.
func webhookManifest(t *testing.T) *admissionregistrationv1.MutatingWebhook {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "config", "webhook", "manifests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Fatal(err)
	}
	return &manifest.Webhooks[0]
}

// Every mistake in a flag gets one message, with the flag and what to do.
func TestExplainFlagErrors(t *testing.T) {
	cluster := data("cluster.yaml")
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"no pod":            {[]string{"--state", cluster}, []string{"no pod to explain", "-f FILE"}},
		"pod and file":      {[]string{"x", "-f", "y.yaml"}, []string{"x", "-f y.yaml", "give one of them"}},
		"two pods":          {[]string{"x", "y"}, []string{"accepts at most 1 arg"}},
		"workload":          {[]string{"deployment/x"}, []string{"deployment/x", "kubectl get deployment/x -o yaml | gpu-binpacker explain -f -"}},
		"pod without name":  {[]string{"pod/"}, []string{"pod/POD"}},
		"output":            {[]string{"x", "-o", "xml"}, []string{"--output", "xml", "table, wide, json or yaml"}},
		"standard input":    {[]string{"-f", "-", "--state", "-"}, []string{"-f -", "--state -", "give a file"}},
		"state and context": {[]string{"x", "--state", cluster, "--context", "y"}, []string{"context", "state"}},
		"example and state": {[]string{"--state", cluster, "--example"}, []string{"example", "state"}},
		"not in example":    {[]string{"x", "--example"}, []string{`"x"`, "the built-in example"}},
		"no such flag":      {[]string{"x", "--json"}, []string{"--json"}},
		"no such pod":       {[]string{"x", "--state", cluster}, []string{`"x"`, `"default"`, "-n"}},
		"no file":           {[]string{"-f", "missing.yaml", "--state", cluster}, []string{"-f", "missing.yaml", "no such file"}},
		"no state file":     {[]string{"x", "--state", "missing.yaml"}, []string{"--state", "missing.yaml", "no such file"}},
		"no state":          {[]string{"x", "--state", data("job.yaml")}, []string{"--state", "job.yaml", "report --save-state"}},
		"no configuration":  {[]string{"x", "--state", cluster, "--config", "missing.yaml"}, []string{"configuration file", "missing.yaml"}},
		"no kubeconfig":     {[]string{"x", "--kubeconfig", "missing"}, []string{"missing", "--kubeconfig"}},
		"namespace": {[]string{"-f", data("job.yaml"), "--state", cluster, "-n", "team-b"},
			[]string{"metadata.namespace", `"team-a"`, `"team-b"`, "leave out -n"}},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, append([]string{"explain"}, tc.args...), tc.want) })
	}
}

// wantError runs a command that is to fail and looks for words in its message.
func wantError(t *testing.T, args, want []string) {
	t.Helper()
	out, err := execute(t, args...)
	if err == nil {
		t.Fatalf("no error, but\n%s", out)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// Every mistake in a pod's file gets one message, with the field and what to do.
func TestExplainFileErrors(t *testing.T) {
	pod := func(resources string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n  - {name: a, image: i, resources: " + resources + "}\n"
	}
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: 1x}}}]}}}\n"
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"empty":           {"# nothing\n", []string{"empty", "Deployment"}},
		"no YAML":         {"a: [\n", []string{"no valid YAML", "line 1"}},
		"key twice":       {"kind: Pod\nkind: Job\n", []string{"line 2", `"kind" already set`}},
		"text":            {"hello\n", []string{"no Kubernetes object"}},
		"no kind":         {"metadata: {name: x}\n", []string{"apiVersion and kind", "missing"}},
		"other kinds":     {"apiVersion: v1\nkind: Service\nmetadata: {name: s}\n", []string{"only Service s", "give one of"}},
		"old apiVersion":  {"apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: x}\n", []string{"Deployment x", "apiVersion", `"apps/v1"`}},
		"two pods":        {pod("{}") + "---\n" + pod("{}"), []string{"Pod x, Pod x", "leave one"}},
		"unknown field":   {strings.Replace(pod("{}"), "image", "imagee", 1), []string{"Pod x", `"spec.containers[0].imagee"`, "spelling"}},
		"type":            {strings.Replace(pod("{}"), "image: i", "image: [i]", 1), []string{"Pod x", "containers.image"}},
		"no containers":   {"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {}\n", []string{"spec.containers", "missing"}},
		"quantity":        {pod("{requests: {cpu: 8 cores}}"), []string{"spec.containers[0].resources.requests[cpu]", `"8 cores"`, "500m"}},
		"in a template":   {deployment, []string{"Deployment d", "spec.template.spec.containers[0].resources.limits[cpu]", `"1x"`}},
		"negative":        {pod("{limits: {cpu: -1}}"), []string{"limits[cpu]", "negative"}},
		"half a GPU":      {pod("{limits: {nvidia.com/gpu: 0.5}}"), []string{"limits[nvidia.com/gpu]", "whole number"}},
		"GPU, no limit":   {pod("{requests: {nvidia.com/gpu: 1}}"), []string{"spec.containers[0].resources.limits", "add the limit 1"}},
		"GPU, two values": {pod("{requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}"), []string{"requests[nvidia.com/gpu]", "equal"}},
		"two mistakes":    {pod("{limits: {nvidia.com/gpu: 0.5, cpu: x}}"), []string{"limits[nvidia.com/gpu]", "limits[cpu]"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, []string{"explain", "-f", writeFile(t, tc.file), "--state", data("cluster.yaml")}, tc.want)
		})
	}
}

// Every mistake in a state file is found before anything is printed.
func TestStateFileErrors(t *testing.T) {
	const head = "apiVersion: gpu-binpacker.io/v1alpha1\nkind: State\n"
	const taken = "takenAt: \"2026-01-31T12:00:00Z\"\n"
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"other kind":    {"apiVersion: v1\nkind: List\n", []string{"report --save-state"}},
		"no time":       {head, []string{"takenAt", "missing"}},
		"unknown field": {head + taken + "node: []\n", []string{"node", "report --save-state"}},
		"node twice":    {head + taken + "nodes: [{metadata: {name: a}}, {metadata: {name: a}}]\n", []string{"nodes[1].metadata.name", "twice"}},
		"no UID":        {head + taken + "pods: [{metadata: {name: a, namespace: b}}]\n", []string{"pods[0].metadata.uid"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, tc.file)
			wantError(t, []string{"explain", "x", "--state", path}, append(tc.want, "--state"))
			wantError(t, []string{"nodes", "--state", path}, append(tc.want, "--state"))
		})
	}
}
