package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// baseline holds pods as the API server stored them before the product was
// installed, by name, as JSON without what differs between any two pods.
type baseline map[string]string

// untouched are pods that the product must leave as they are sent, and the labels
// of the namespace they are created in.
func untouched() map[string]untouchedCase {
	optedIn := map[string]string{config.LabelEnabled: "true"}
	return map[string]untouchedCase{
		"gpu-pod-elsewhere":       {pod: gpuPod(1)},
		"gpu-pod-label-false":     {pod: gpuPod(1), labels: map[string]string{config.LabelEnabled: "false"}},
		"plain-pod-opted-in":      {pod: gpuPod(0), labels: optedIn},
		"gpu-pod-opted-out":       {pod: with(gpuPod(1), func(p *corev1.Pod) { p.Labels = map[string]string{config.LabelEnabled: "false"} }), labels: optedIn},
		"gpu-pod-other-scheduler": {pod: with(gpuPod(1), func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }), labels: optedIn},
		"gpu-pod-gated":           {pod: with(gpuPod(1), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}} }), labels: optedIn},
		"gpu-pod-spread":          {pod: with(gpuPod(1), spread), labels: optedIn},
		"gpu-pod-unknown-name":    {pod: with(gpuPod(0), func(p *corev1.Pod) { setResource(p, "example.com/gpu", 1) }), labels: optedIn},
	}
}

type untouchedCase struct {
	pod    *corev1.Pod
	labels map[string]string
}

// createBaseline stores the pods on a control plane without the product. Dry
// runs go through all of admission and leave nothing behind.
func createBaseline(ctx context.Context, cp *controlplane.ControlPlane) (baseline, error) {
	out := baseline{}
	for name, tc := range untouched() {
		text, err := stored(ctx, cp, "before-"+name, tc)
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out, nil
}

// stored creates the pod, in a new namespace, and returns what the API server
// made of it.
func stored(ctx context.Context, cp *controlplane.ControlPlane, prefix string, tc untouchedCase) (string, error) {
	namespace, err := cp.GenerateNamespace(ctx, prefix, tc.labels)
	if err != nil {
		return "", err
	}
	pod := tc.pod.DeepCopy()
	pod.Namespace = namespace
	if err := cp.Client().Create(ctx, pod, client.DryRunAll); err != nil {
		return "", fmt.Errorf("creating the pod of %s: %w", namespace, err)
	}
	pod.Namespace, pod.UID, pod.CreationTimestamp, pod.ManagedFields = "", "", metav1.Time{}, nil
	for i := range pod.Status.Conditions {
		pod.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	for i := range pod.Spec.Volumes { // the token's volume has a random name
		pod.Spec.Volumes[i].Name = ""
	}
	for i := range pod.Spec.Containers {
		for j := range pod.Spec.Containers[i].VolumeMounts {
			pod.Spec.Containers[i].VolumeMounts[j].Name = ""
		}
	}
	text, err := json.MarshalIndent(pod, "", " ")
	return string(text), err
}

// Pods that are none of our business are stored exactly as without us.
func TestUntouchedPods(t *testing.T) {
	withNodes(t, controlplane.Nodes("untouched", 2, node8))
	for name, tc := range untouched() {
		t.Run(name, func(t *testing.T) {
			got, err := stored(t.Context(), cluster.ControlPlane, "after-"+name, tc)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(unsteered[name], got); diff != "" {
				t.Errorf("the pod differs (-without us +with us):\n%s", diff)
			}
		})
	}
}

// with changes a pod and returns it.
func with(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(pod)
	return pod
}

// gpuPod returns a pod with that many GPUs, none for 0.
func gpuPod(gpus int64) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "train", Image: "train:1"}}},
	}
	setResource(pod, "cpu", 8)
	if gpus > 0 {
		setResource(pod, "nvidia.com/gpu", gpus)
	}
	return pod
}

func setResource(pod *corev1.Pod, name corev1.ResourceName, value int64) {
	c := &pod.Spec.Containers[0]
	if c.Resources.Limits == nil {
		c.Resources.Limits = corev1.ResourceList{}
	}
	c.Resources.Limits[name] = *resource.NewQuantity(value, resource.DecimalSI)
}

// spread states a wish to spread.
func spread(pod *corev1.Pod) {
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
	}}
}
