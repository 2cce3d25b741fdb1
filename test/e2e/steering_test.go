package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// node8 is a node with 8 GPUs.
var node8 = map[string]string{"cpu": "96", "memory": "1152Gi", "nvidia.com/gpu": "8"}

// withNodes creates nodes for one test.
func withNodes(t *testing.T, nodes []*corev1.Node) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, node := range nodes {
			if err := client.IgnoreNotFound(cluster.Client().Delete(ctx, node)); err != nil {
				t.Error(err)
			}
		}
		if err := cluster.WaitIndex(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := cluster.CreateNodes(t.Context(), nodes...); err != nil {
		t.Fatal(err)
	}
	if err := cluster.WaitIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// optedIn creates an opted-in namespace for one test; its pods go with it.
func optedIn(t *testing.T, prefix string) string {
	t.Helper()
	name, err := cluster.GenerateNamespace(t.Context(), prefix, map[string]string{config.LabelEnabled: "true"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := cluster.Client().DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(name), client.GracePeriodSeconds(0))
		if err != nil {
			t.Error(err)
		}
	})
	return name
}

// create creates the pod in the namespace and returns it as stored.
func create(t *testing.T, namespace, name string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	pod = pod.DeepCopy()
	pod.Namespace, pod.Name = namespace, name
	if err := cluster.Client().Create(t.Context(), pod); err != nil {
		t.Fatalf("the pod was not created: %v", err)
	}
	return pod
}

// waitBound waits until the scheduler has bound the pod and returns the node.
func waitBound(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client().Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Spec.NodeName != "", err
	})
	if err != nil {
		t.Fatalf("pod %s was not bound: %v; conditions %+v", pod.Name, err, pod.Status.Conditions)
	}
	return pod.Spec.NodeName
}

// What the user stated stays where it was; ours comes after it and follows the
// user's preference.
func TestUserAffinitySurvives(t *testing.T) {
	zone := controlplane.WithZone
	withNodes(t, append(controlplane.Nodes("east", 2, node8, zone("east")), controlplane.Nodes("west", 2, node8, zone("west"))...))
	namespace := optedIn(t, "user-affinity")
	terms := []corev1.PreferredSchedulingTerm{{Weight: 20, Preference: corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"west"}}},
	}}}
	required := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}}}},
	}}
	pods := &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
		Weight:          1,
		PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}}},
	}}}
	pod := create(t, namespace, "pod", with(gpuPod(1), func(p *corev1.Pod) {
		p.Annotations = map[string]string{"example.com/note": "kept"}
		p.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: terms},
			PodAffinity:  pods,
		}
	}))
	got := pod.Spec.Affinity.NodeAffinity
	if diff := cmp.Diff(required, got.RequiredDuringSchedulingIgnoredDuringExecution); diff != "" {
		t.Errorf("required terms:\n%s", diff)
	}
	if diff := cmp.Diff(pods, pod.Spec.Affinity.PodAffinity); diff != "" {
		t.Errorf("pod affinity:\n%s", diff)
	}
	if pod.Annotations["example.com/note"] != "kept" || pod.Annotations[config.AnnotationSteering] != config.SteeringRanked {
		t.Errorf("annotations %v", pod.Annotations)
	}
	preferred := got.PreferredDuringSchedulingIgnoredDuringExecution
	if len(preferred) < 2 || !cmp.Equal(terms[0], preferred[0]) {
		t.Fatalf("preferred terms %+v", preferred)
	}
	for i := range preferred[1:] {
		term := &preferred[1+i]
		if !steering.IsTerm(term) || term.Weight >= 20 || !strings.HasPrefix(term.Preference.MatchFields[0].Values[0], "west") {
			t.Errorf("term %+v is not ours, not below the user's or not in the user's zone", term)
		}
	}
	if node := waitBound(t, pod); node != pod.Annotations[config.AnnotationTarget] {
		t.Errorf("bound to %s, target %s", node, pod.Annotations[config.AnnotationTarget])
	}
}

// A pod that nothing fits is created and gets no node-affinity terms.
func TestNothingFits(t *testing.T) {
	withNodes(t, controlplane.Nodes("small", 2, node8))
	pod := create(t, optedIn(t, "nothing-fits"), "pod", gpuPod(9))
	if pod.Annotations[config.AnnotationSteering] != config.SteeringLate {
		t.Errorf("annotations %v", pod.Annotations)
	}
	if pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil {
		t.Errorf("node affinity %+v", pod.Spec.Affinity.NodeAffinity)
	}
}

// The API server shows users no warning because of us.
func TestNoWarnings(t *testing.T) {
	withNodes(t, controlplane.Nodes("quiet", 2, node8))
	namespace := optedIn(t, "no-warnings")
	var warnings recorder
	restConfig := cluster.RESTConfig()
	restConfig.WarningHandler = &warnings
	restConfig.Timeout = 30 * time.Second
	clientset, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		t.Fatal(err)
	}
	for name, gpus := range map[string]int64{"ranked": 1, "late": 9} {
		pod := gpuPod(gpus)
		pod.Name = name
		created, err := clientset.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if created.Annotations[config.AnnotationSteering] != name {
			t.Errorf("%s: annotations %v", name, created.Annotations)
		}
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
}

// recorder keeps the warnings of the API server.
type recorder []string

var _ rest.WarningHandler = (*recorder)(nil)

func (r *recorder) HandleWarningHeader(_ int, _ string, text string) { *r = append(*r, text) }

// With the webhook's processes gone, pods are created all the same; when they are
// back, pods are steered again.
func TestWebhookKilled(t *testing.T) {
	withNodes(t, controlplane.Nodes("killed", 2, node8))
	namespace := optedIn(t, "killed")
	for _, replica := range cluster.Installed.Replicas() {
		if err := replica.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		pod := create(t, namespace, fmt.Sprintf("while-dead-%d", i), gpuPod(1))
		if how, ok := pod.Annotations[config.AnnotationSteering]; ok {
			t.Errorf("the pod was steered (%s), although no webhook runs", how)
		}
		waitBound(t, pod)
	}
	for _, replica := range cluster.Installed.Replicas() {
		if err := replica.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Installed.WaitSteering(t.Context()); err != nil {
		t.Error(err)
	}
}
