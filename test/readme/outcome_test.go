package readme

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
)

const (
	// What the README and the manifests call things.
	systemNamespace = "gpu-binpacker-system"
	deploymentName  = "gpu-binpacker"
	sampleNamespace = "gpu-binpacker-sample"
	samplePods      = 8

	waitInterval = 100 * time.Millisecond
	waitTimeout  = time.Minute
)

// reported: the pods are on two nodes and would fit on one.
func reported(t *testing.T, r *reader, out string) {
	t.Helper()
	wantContain(t, "the report", out, "GPU pods are on 2 of 4 nodes", "they are on 1;")
	page, err := os.ReadFile(filepath.Join(r.dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	wantContain(t, "the page", string(page), "<!doctype html>", "GPU pods are on 2 of 4 nodes")
}

// exampleShown checks what the example shows: a saving, a decision and a page.
func exampleShown(t *testing.T, r *reader, out string) {
	t.Helper()
	wantContain(t, "the example", out, "of 303 nodes", "steered to gpu-")
	page, err := os.ReadFile(filepath.Join(r.dir, "bin", "reports", "example.html"))
	if err != nil {
		t.Fatal(err)
	}
	wantContain(t, "the page", string(page), "<!doctype html>", "the built-in example")
}

// startReplicas runs the webhook with what kubectl has applied: see package
// installation for what it must change. Then the Deployment gets its pods, which
// kwok lets look as if they ran.
func startReplicas(t *testing.T, r *reader, _ string) {
	t.Helper()
	manifests, err := os.ReadFile(filepath.Join(r.dir, "bin", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(r.dir, "bin", "applied")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{"install.yaml": string(manifests), "kustomization.yaml": "resources: [install.yaml]\n"} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	relative, err := filepath.Rel(r.root, folder)
	if err != nil {
		t.Fatal(err)
	}
	replicas := r.deployment(t).Spec.Replicas
	r.installed = installation.InstallForTest(t, r.ControlPlane, installation.Options{
		Kustomization: relative, Binary: filepath.Join(r.dir, "bin", "gpu-binpacker"),
	})
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, *replicas)
	if err := r.Client().Patch(t.Context(), r.deployment(t), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	r.waitDeployment(t)
}

// steered: nothing failed, and the pod on trial is steered to a node.
func steered(t *testing.T, _ *reader, out string) {
	t.Helper()
	wantContain(t, "the check", out, "is steered: in "+team+", towards gpu-", " 0 failures")
}

// endEarlierPods makes room, so that it is known how many nodes the sample needs.
func endEarlierPods(t *testing.T, r *reader) {
	t.Helper()
	if err := r.Client().DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(team)); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, "the pods of "+team+" to end", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := r.Client().List(ctx, &pods, client.InNamespace(team))
		return len(pods.Items) == 0, err
	})
}

// packed: all pods of the sample are on one node.
func packed(t *testing.T, r *reader, _ string) {
	t.Helper()
	r.pod, r.node = "", ""
	var nodes []string
	r.eventually(t, "the pods of the sample to run", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := r.Client().List(ctx, &pods, client.InNamespace(sampleNamespace)); err != nil {
			return false, err
		}
		nodes = nil
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				r.pod, nodes = pods.Items[i].Name, append(nodes, pods.Items[i].Spec.NodeName)
			}
		}
		return len(nodes) == samplePods, nil
	})
	slices.Sort(nodes)
	r.node = nodes[0]
	if used := slices.Compact(nodes); len(used) != 1 {
		t.Fatalf("the sample is on %v, want one node", used)
	}
}

func listed(t *testing.T, r *reader, out string) {
	t.Helper()
	if on := strings.Count(out, r.node); on != samplePods {
		t.Errorf("kubectl shows %d pods on %s, want %d", on, r.node, samplePods)
	}
}

func explainedPod(t *testing.T, r *reader, out string) {
	t.Helper()
	wantContain(t, "the explanation", out, sampleNamespace+"/"+r.pod, "steered to "+r.node, "on "+r.node+", its target")
}

// explainedFile: the sample's node is full, so another one is next.
func explainedFile(t *testing.T, r *reader, out string) {
	t.Helper()
	wantContain(t, "the explanation", out, "Decision   steered to gpu-", "not enough free")
	if strings.Contains(out, "steered to "+r.node) {
		t.Errorf("a pod would be steered to %s, which is full", r.node)
	}
}

// interruptWatch ends the command as a user does, when it has shown the table.
func interruptWatch(t *testing.T, r *reader, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	cmd := r.command(ctx, "exec "+text)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	full := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&shown, lines.Text())
		if strings.Contains(lines.Text(), r.node) && strings.Contains(lines.Text(), "100%") && !full {
			full = true
			if err := cmd.Cancel(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Logf("$ %s\n%s", text, shown.String())
	if err := cmd.Wait(); err != nil || !full {
		t.Errorf("%s: %v, has shown %s as full: %t", text, err, r.node, full)
	}
	return shown.String()
}

func pluginShows(t *testing.T, r *reader, out string) {
	t.Helper()
	wantContain(t, "the plugin", out, r.node)
}

// uninstalled: the API server does not call the webhook any more, what was
// installed is gone, and the sample's pods are where they were.
func uninstalled(t *testing.T, r *reader, _ string) {
	t.Helper()
	if r.registered(t) {
		t.Errorf("%s is still there", config.WebhookConfigurationName)
	}
	err := r.Client().Get(t.Context(), types.NamespacedName{Namespace: systemNamespace, Name: deploymentName}, &appsv1.Deployment{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("looking for the Deployment: %v, want that it is not found", err)
	}
	packed(t, r, "")
}

func optedOut(t *testing.T, r *reader, _ string) {
	t.Helper()
	namespace := &corev1.Namespace{}
	if err := r.Client().Get(t.Context(), types.NamespacedName{Name: team}, namespace); err != nil {
		t.Fatal(err)
	}
	if value, ok := namespace.Labels[config.LabelEnabled]; ok {
		t.Errorf("%s has the label %s=%s", team, config.LabelEnabled, value)
	}
}

// registered tells whether the API server knows the webhook.
func (r *reader) registered(t *testing.T) bool {
	t.Helper()
	err := r.Client().Get(t.Context(), types.NamespacedName{Name: config.WebhookConfigurationName},
		&admissionregistrationv1.MutatingWebhookConfiguration{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

func (r *reader) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	if err := r.Client().Get(t.Context(), types.NamespacedName{Namespace: systemNamespace, Name: deploymentName}, deployment); err != nil {
		t.Fatal(err)
	}
	return deployment
}

// waitDeployment is what kubectl rollout status does.
func (r *reader) waitDeployment(t *testing.T) {
	t.Helper()
	r.eventually(t, "the Deployment to be ready", func(context.Context) (bool, error) {
		deployment := r.deployment(t)
		return deployment.Status.ReadyReplicas == *deployment.Spec.Replicas && *deployment.Spec.Replicas > 0, nil
	})
}

// noPodWasRefused asks the API server about the whole test.
func (r *reader) noPodWasRefused(t *testing.T) {
	if r.installed == nil {
		return
	}
	refused, err := r.installed.Rejections(context.WithoutCancel(t.Context()))
	if err != nil || refused > 0 {
		t.Errorf("%d pods were refused because of the webhook, %v", refused, err)
	}
}

// eventually waits until the condition is true and ends the test when it never is.
func (r *reader) eventually(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), waitInterval, waitTimeout, true, condition); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// wantContain checks an output for texts.
func wantContain(t *testing.T, what, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%s does not contain %q", what, text)
		}
	}
}
