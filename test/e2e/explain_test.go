package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/cli"
	"github.com/gpu-binpacker/gpu-binpacker/cli/explain"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// command runs the real binary against the cluster and decodes what it prints.
func command(t *testing.T, into any, args ...string) {
	t.Helper()
	root, err := programs.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bin", "gpu-binpacker"), append(args, "-o", "json", "--kubeconfig", cluster.Kubeconfig())...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, &problems)
	}
	if problems.Len() > 0 {
		t.Errorf("%v: on standard error: %s", args, &problems)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%v: %v in\n%s", args, err, out)
	}
}

// What explain predicts for a pod in a file is what then happens to it, and what
// it says about the pod afterwards is true.
func TestExplain(t *testing.T) {
	withNodes(t, controlplane.Nodes("explained", 4, node8))
	namespace := optedIn(t, "explain")
	place(t, namespace, "first", gpuPod(3))
	next := gpuPod(2)
	next.APIVersion, next.Kind, next.Name, next.Namespace = "v1", "Pod", "next", namespace
	text, err := yaml.Marshal(next)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var before, after explain.Explanation
	command(t, &before, "explain", "-f", file)
	if !before.Webhook.Called || before.Decision.Steering != config.SteeringRanked || len(before.Candidates) != 4 {
		t.Fatalf("explained as %+v, %+v with %d candidates", before.Webhook, before.Decision, len(before.Candidates))
	}
	pod := create(t, namespace, "next", next)
	node := waitBound(t, pod)
	if target := pod.Annotations[config.AnnotationTarget]; before.Decision.Target != target {
		t.Errorf("explained target %s, real target %s", before.Decision.Target, target)
	}
	if !slices.Equal(before.Decision.Predicted, []string{node}) {
		t.Errorf("predicted %v, bound to %s", before.Decision.Predicted, node)
	}
	command(t, &after, "explain", "pod/next", "-n", namespace)
	if a := after.Admission; a == nil || a.Node != node || a.Target != node || a.Position != 1 || a.Steering != config.SteeringRanked {
		t.Errorf("explained as %+v; it is on its target %s", a, node)
	}
	if after.Decision.Target != node || after.Candidates[0].LeftAfter != before.Candidates[0].LeftAfter {
		t.Errorf("its own share counts against it: %+v, first %+v", after.Decision, after.Candidates[0])
	}
	var nodes cli.NodesReport
	command(t, &nodes, "nodes")
	if len(nodes.Nodes) != 4 || nodes.Nodes[0].Name != node || nodes.Nodes[0].GPUs[0].Allocated != 5 {
		t.Errorf("nodes %+v, want 5 GPUs used on %s", nodes.Nodes, node)
	}
	if r := nodes.Resources; len(r) != 1 || r[0].OccupiedNodes != 1 || r[0].EmptyNodes != 3 || r[0].LargestFitting != 8 {
		t.Errorf("resources %+v", r)
	}
}
