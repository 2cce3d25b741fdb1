package state

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

var taken = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

const gpu = "nvidia.com/gpu"

func gpuNode(name string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"secret": "canary"},
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "z1", "customer.example/team": "acme"},
		},
		Spec: corev1.NodeSpec{ProviderID: "canary"},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{gpu: resource.MustParse("8"), "cpu": resource.MustParse("96"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "canary"}},
			Images:      []corev1.ContainerImage{{Names: []string{"registry.acme.example/train:1"}, SizeBytes: 1 << 30}},
		},
	}
}

func gpuPod(name, node string, count string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "acme-ml", UID: "uid-" + "1234", Labels: map[string]string{"app": "acme-app"},
			Annotations: map[string]string{"note": "canary", config.AnnotationTarget: node,
				config.AnnotationRanking: `{"strategy":"BestFit","nodes":[{"name":"` + node + `","score":0,"freeAfter":7,"weight":100}]}`},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "acme-set", UID: "set"}},
		},
		Spec: corev1.PodSpec{
			NodeName:     node,
			NodeSelector: map[string]string{"customer.example/team": "acme", corev1.LabelTopologyZone: "z1"},
			Containers: []corev1.Container{{
				Name: "acme-train", Image: "registry.acme.example/train:1", Command: []string{"canary"}, Env: []corev1.EnvVar{{Name: "TOKEN", Value: "canary"}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse(count)}, Requests: corev1.ResourceList{gpu: resource.MustParse(count)}},
			}},
			Volumes: []corev1.Volume{{Name: "canary"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Message: "canary"},
	}
}

func example() *State {
	over := gpuPod("over", "n2", "8")
	over.UID, over.Status.Phase = "over", corev1.PodSucceeded
	return New(taken, []string{"acme-ml"}, []corev1.Node{gpuNode("n2"), gpuNode("acme-n1")}, []corev1.Pod{gpuPod("acme-pod", "acme-n1", "3"), over})
}

// What was written is read back; nothing is in it that may be a secret.
func TestRoundTrip(t *testing.T) {
	var out bytes.Buffer
	s := example()
	if err := s.Save("-", &out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "canary") {
		t.Errorf("more than scheduling needs is in the file:\n%s", out.String())
	}
	path := filepath.Join(t.TempDir(), "state.yaml")
	if err := s.Save(path, nil); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, %v: others can read it", info, err)
	}
	for name, load := range map[string]func() (*State, error){
		"file":           func() (*State, error) { return Load(path, nil) },
		"standard input": func() (*State, error) { return Load("-", &out) },
	} {
		got, err := load()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(s, got); diff != "" {
			t.Errorf("%s (-written +read):\n%s", name, diff)
		}
	}
}

// The index of a state decides as that of the cluster would.
func TestIndex(t *testing.T) {
	cfg := config.Default()
	index, err := example().Index(cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := []nodes.Use{
		{Name: "acme-n1", GPUs: []nodes.ResourceUse{{Name: gpu, Allocatable: 8, Allocated: 3}}, Pods: 1},
		{Name: "n2", GPUs: []nodes.ResourceUse{{Name: gpu, Allocatable: 8}}},
	}
	if diff := cmp.Diff(want, index.Nodes()); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	pod := gpuPod("new", "", "2")
	d := scoring.NewScorer(cfg, index).Decide(t.Context(), scoring.Request{Pod: &pod, Namespace: "acme-ml", UID: "new", DryRun: true})
	if d.Target() != "acme-n1" {
		t.Errorf("target %q, want acme-n1", d.Target())
	}
}

// A state is decided about by the version of its own API server, unless the
// configuration names one.
func TestScorerGoesByTheVersionOfTheState(t *testing.T) {
	for name, tc := range map[string]struct {
		server, configured string
		want               string
		source             scheduler.VersionSource
	}{
		"its own":       {server: "v1.34.4-eks-113cf36", want: "1.34", source: scheduler.VersionServer},
		"configured":    {server: "v1.34.4", configured: "1.37", want: "1.37", source: scheduler.VersionConfigured},
		"none":          {want: config.NewestVersion.String(), source: scheduler.VersionAssumed},
		"not a version": {server: "unknown", want: config.NewestVersion.String(), source: scheduler.VersionAssumed},
	} {
		t.Run(name, func(t *testing.T) {
			s, cfg := example(), config.Default()
			s.ServerVersion, cfg.Scheduler.KubernetesVersion = tc.server, tc.configured
			index, err := s.Index(cfg)
			if err != nil {
				t.Fatal(err)
			}
			version := s.Scorer(cfg, index).Version()
			if got := version.Held()[0].String(); got != tc.want || version.Source() != tc.source {
				t.Errorf("goes by %s, %s; want %s, %s", got, version.Source(), tc.want, tc.source)
			}
		})
	}
}

// Hashing leaves no name, and every decision as it was but for the names.
func TestHash(t *testing.T) {
	s := example()
	hashed, err := s.Hash()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := hashed.Save("-", &out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "acme") || strings.Contains(out.String(), "n2") {
		t.Errorf("names are left:\n%s", out.String())
	}
	if !strings.Contains(out.String(), "z1") {
		t.Error("the zone is gone")
	}
	if _, err := Load("-", &out); err != nil {
		t.Errorf("reading it back: %v", err)
	}
	node := ""
	for i := range hashed.Nodes {
		n := &hashed.Nodes[i]
		if n.Labels[corev1.LabelHostname] != n.Name {
			t.Errorf("node %s has the hostname %s", n.Name, n.Labels[corev1.LabelHostname])
		}
		if n.Name == hashed.Pods[0].Spec.NodeName {
			node = n.Name
		}
	}
	pod := &hashed.Pods[0]
	switch {
	case node == "":
		t.Error("the pod's node is another")
	case pod.Annotations[config.AnnotationTarget] != node || !strings.Contains(pod.Annotations[config.AnnotationRanking], `"name":"`+node+`"`):
		t.Errorf("annotations %v", pod.Annotations)
	case pod.Spec.NodeSelector["customer.example/team"] != hashed.Nodes[0].Labels["customer.example/team"]:
		t.Error("the selector no longer matches")
	case pod.Spec.Containers[0].Image != hashed.Nodes[0].Status.Images[0].Names[0]:
		t.Error("the image is no longer on the node")
	}
	again, err := s.Hash()
	if err != nil {
		t.Fatal(err)
	}
	if again.Pods[0].Name == pod.Name {
		t.Error("two files have the same hashes: names could be guessed")
	}
}

func TestLoadErrors(t *testing.T) {
	const head = "apiVersion: gpu-binpacker.io/v1alpha1\nkind: State\ntakenAt: 2026-01-31T12:00:00Z\nenabledNamespaces: []\n"
	for name, tc := range map[string]struct{ text, want string }{
		"empty":         {"", "not gpu-binpacker.io/v1alpha1 State; write a state file with `gpu-binpacker report --save-state`"},
		"no YAML":       {"{", "is not a state file"},
		"list":          {"- 1", "is not a state file"},
		"kubectl get":   {"apiVersion: v1\nkind: List\nitems: []", `unknown field "items"`},
		"configuration": {"apiVersion: gpu-binpacker.io/v1alpha1\nkind: Configuration", "gpu-binpacker.io/v1alpha1 Configuration, not gpu-binpacker.io/v1alpha1 State"},
		"unknown field": {head + "nodes: []\npod: []\n", `unknown field "pod"`},
		"no time":       {"apiVersion: gpu-binpacker.io/v1alpha1\nkind: State\nnodes: []\npods: []", "takenAt: is missing"},
		"no name":       {head + "nodes: [{}]\npods: []", "nodes[0].metadata.name: is missing"},
		"twice":         {head + "nodes: [{metadata: {name: a}}, {metadata: {name: a}}]\npods: []", `nodes[1].metadata.name: "a" is there twice`},
		"no namespace":  {head + "nodes: []\npods: [{metadata: {name: a, uid: u}}]", "pods[0].metadata: name and namespace"},
		"no uid":        {head + "nodes: []\npods: [{metadata: {name: a, namespace: b}}]", "pods[0].metadata.uid: is missing"},
		"bad quantity":  {head + "nodes: [{metadata: {name: a}, status: {allocatable: {cpu: many}}}]\npods: []", "is not a state file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load("-", strings.NewReader(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want something with %q", err, tc.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none"), nil); err == nil || !strings.Contains(err.Error(), "reading the state") {
		t.Errorf("no file: %v", err)
	}
}
