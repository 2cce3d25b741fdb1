package webhook

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// update rewrites the expectations of the golden files.
var update = flag.Bool("update", false, "rewrite the expectations in testdata/golden")

// expectationMark separates what a person writes in a golden file from what
// -update writes.
const expectationMark = "# What comes of it; rewritten by: go test ./webhook -run TestGolden -update\n"

// goldenCase is one file of testdata/golden. A new case needs no Go: write the
// upper part of a file and let -update add the rest, then read what it added.
type goldenCase struct {
	// Description says what the case is about and what must come of it.
	Description string `json:"description"`
	// Case is the number of the situation in the public record it comes from.
	Case string `json:"case"`
	// Configuration is what differs from the defaults.
	Configuration map[string]any `json:"configuration"`
	// Cluster names a file of testdata/clusters; Nodes and Pods come on top.
	// Namespaces that are opted in: team-a when the file says nothing.
	Cluster    string        `json:"cluster"`
	Nodes      []corev1.Node `json:"nodes"`
	Pods       []corev1.Pod  `json:"pods"`
	Namespaces []string      `json:"namespaces"`
	// Request is what differs from the creation of a pod in team-a.
	Request goldenRequest `json:"request"`
	// Pod is the submitted pod. It is not decoded, so that it can be wrong, or
	// hold what our types do not know; Raw is its text where YAML cannot say it.
	Pod json.RawMessage `json:"pod"`
	Raw string          `json:"raw"`
	// Irregular says that, on purpose, the pod does not decode strictly: it has
	// unknown fields, or values of a wrong form.
	Irregular bool `json:"irregular"`

	goldenExpectation `json:",inline"`

	// input is the text of the file above expectationMark.
	input string
}

// goldenRequest overrides fields of the admission request.
type goldenRequest struct {
	Operation   admissionv1.Operation        `json:"operation"`
	Namespace   string                       `json:"namespace"`
	UID         types.UID                    `json:"uid"`
	DryRun      bool                         `json:"dryRun"`
	SubResource string                       `json:"subResource"`
	Kind        *metav1.GroupVersionKind     `json:"kind"`
	Resource    *metav1.GroupVersionResource `json:"resource"`
}

// goldenExpectation is what -update writes.
type goldenExpectation struct {
	// Steering and Reason are the labels of the decision's metric.
	Steering string `json:"steering"`
	Reason   string `json:"reason"`
	Patch    []any  `json:"patch"`
}

func TestGolden(t *testing.T) {
	for name, tc := range goldenCases(t) {
		t.Run(name, func(t *testing.T) { tc.run(t, filepath.Join("testdata", "golden", name+".yaml")) })
	}
}

func (c *goldenCase) run(t *testing.T, path string) {
	bed := c.bed(t)
	raw, request := c.object(), c.request()
	response := bed.Handle(t.Context(), request)
	got := goldenExpectation{Patch: []any{}}
	got.Steering, got.Reason = bed.onlyDecision(t)
	if response.Patch != nil {
		if err := json.Unmarshal(response.Patch, &got.Patch); err != nil {
			t.Fatalf("patch is not JSON: %v\n%s", err, response.Patch)
		}
	}
	if *update {
		c.write(t, path, got)
	} else if diff := cmp.Diff(c.goldenExpectation, got); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}

	result := checkResponse(t, raw, request.UID, response)
	if regular := decodesStrictly(raw); regular == c.Irregular {
		t.Errorf("the pod decodes strictly: %v, irregular: %v", regular, c.Irregular)
	}
	// A rejected patch is a bug of ours, and rare: its reservation may time out.
	if got.Reason != string(steering.ReasonPatch) {
		reserves := got.Steering == config.SteeringRanked && !c.Request.DryRun && bed.cfg.Mode == config.ModeEnforce
		if n := bed.ix.Size().Reservations; (n > 0) != reserves {
			t.Errorf("%d reservations, want some: %v", n, reserves)
		}
	}
	checkHandledAgain(t, bed, request, result)
}

// goldenCases reads all golden files, by name without extension.
func goldenCases(t testing.TB) map[string]*goldenCase {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "golden", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	cases := map[string]*goldenCase{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c := &goldenCase{}
		if err := yaml.UnmarshalStrict(data, c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if c.Description == "" || (c.Pod == nil) == (c.Raw == "") {
			t.Fatalf("%s: needs a description, and either pod or raw", path)
		}
		c.input, _, _ = strings.Cut(string(data), expectationMark)
		cases[strings.TrimSuffix(filepath.Base(path), ".yaml")] = c
	}
	return cases
}

// write replaces the expectation in the file.
func (c *goldenCase) write(t *testing.T, path string, got goldenExpectation) {
	t.Helper()
	expectation, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimRight(c.input, "\n") + "\n" + expectationMark + string(expectation)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// bed builds the cluster and the handler of the case.
func (c *goldenCase) bed(t testing.TB) *testBed {
	t.Helper()
	cluster := goldenCluster(t, c.Cluster)
	for i := range c.Nodes {
		cluster = append(cluster, &c.Nodes[i])
	}
	for i := range c.Pods {
		cluster = append(cluster, &c.Pods[i])
	}
	namespaces := c.Namespaces
	if namespaces == nil {
		namespaces = []string{"team-a"}
	}
	return newBed(t, c.configuration(t), namespaces, cluster...)
}

// goldenCluster reads the nodes and pods of a file of testdata/clusters.
func goldenCluster(t testing.TB, name string) []any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "clusters", name+".yaml"))
	if errors.Is(err, fs.ErrNotExist) && name == "" {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var cluster struct {
		Nodes []corev1.Node `json:"nodes"`
		Pods  []corev1.Pod  `json:"pods"`
	}
	if err := yaml.UnmarshalStrict(data, &cluster); err != nil {
		t.Fatalf("cluster %s: %v", name, err)
	}
	var objects []any
	for i := range cluster.Nodes {
		objects = append(objects, &cluster.Nodes[i])
	}
	for i := range cluster.Pods {
		objects = append(objects, &cluster.Pods[i])
	}
	return objects
}

// configuration reads the configuration of the case as a file would be read.
func (c *goldenCase) configuration(t testing.TB) config.Configuration {
	t.Helper()
	file := map[string]any{"apiVersion": config.APIVersion, "kind": config.Kind}
	for key, value := range c.Configuration {
		file[key] = value
	}
	data, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// object is the submitted pod as the API server would send it.
func (c *goldenCase) object() []byte {
	if c.Pod != nil {
		return c.Pod
	}
	return []byte(c.Raw)
}

// request builds the admission request of the case.
func (c *goldenCase) request() admission.Request {
	request := podCreate(c.object())
	r := &request.AdmissionRequest
	if c.Request.Operation != "" {
		r.Operation = c.Request.Operation
	}
	if c.Request.Namespace != "" {
		r.Namespace = c.Request.Namespace
	}
	if c.Request.UID != "" {
		r.UID = c.Request.UID
	}
	if c.Request.Kind != nil {
		r.Kind = *c.Request.Kind
	}
	if c.Request.Resource != nil {
		r.Resource = *c.Request.Resource
	}
	r.DryRun, r.SubResource = &c.Request.DryRun, c.Request.SubResource
	return request
}
