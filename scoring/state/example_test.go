package state

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// The example is what a file of it would be, and the same every time.
func TestExample(t *testing.T) {
	s := Example()
	if err := s.validate(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, Example()); diff != "" {
		t.Errorf("it differs from call to call:\n%s", diff)
	}
	var file bytes.Buffer
	if err := s.Save("-", &file); err != nil {
		t.Fatal(err)
	}
	if _, err := Load("-", &file); err != nil {
		t.Errorf("it is no state file: %v", err)
	}
	if len(s.Nodes) != 303 {
		t.Errorf("%d nodes, want 303 as the flag's help says", len(s.Nodes))
	}
}

// No node holds more than it has, and about half of the GPUs are in use on nearly all
// nodes: there is something to save.
func TestExampleIsPossible(t *testing.T) {
	s := Example()
	used := map[string]corev1.ResourceList{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if used[p.Spec.NodeName] == nil {
			used[p.Spec.NodeName] = corev1.ResourceList{}
		}
		for name, quantity := range p.Spec.Containers[0].Resources.Requests {
			sum := used[p.Spec.NodeName][name]
			sum.Add(quantity)
			used[p.Spec.NodeName][name] = sum
		}
	}
	var gpus, allocated int64
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for name, sum := range used[n.Name] {
			if allocatable := n.Status.Allocatable[name]; sum.Cmp(allocatable) > 0 {
				t.Errorf("%s: pods ask for %s of %s %s", n.Name, &sum, &allocatable, name)
			}
		}
		all, some := n.Status.Allocatable[exampleGPU], used[n.Name][exampleGPU]
		gpus, allocated = gpus+all.Value(), allocated+some.Value()
	}
	if 10*allocated < 4*gpus || 10*allocated > 6*gpus {
		t.Errorf("%d of %d GPUs are in use, want about half", allocated, gpus)
	}
	if 10*len(used) < 9*len(s.Nodes) {
		t.Errorf("%d of %d nodes are in use, want nearly all", len(used), len(s.Nodes))
	}
}

// The example's pod is steered.
func TestExamplePod(t *testing.T) {
	s, pod, cfg := Example(), ExamplePod(), config.Default()
	index, err := s.Index(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Enabled(pod.Namespace) {
		t.Errorf("namespace %s has not opted in", pod.Namespace)
	}
	d := s.Scorer(cfg, index).Decide(t.Context(), scoring.Request{Pod: pod, Namespace: pod.Namespace, UID: "new", DryRun: true})
	if d.Target() == "" {
		t.Errorf("the pod gets no node: %s", d.Reason)
	}
}
