package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// 64 pods wait for 16 nodes that open together, and take 8 of them.
func TestWaitingPodsPack(t *testing.T) {
	closed := corev1.Taint{Key: "e2e/closed", Effect: corev1.TaintEffectNoSchedule}
	nodes := controlplane.Nodes("opening", 16, node8, controlplane.WithTaints(closed))
	withNodes(t, nodes)
	namespace := optedIn(t, "waiting")
	for i := range 64 {
		pod := create(t, namespace, fmt.Sprintf("pod-%d", i), gpuPod(1))
		if pod.Annotations[config.AnnotationSteering] != config.SteeringLate {
			t.Fatalf("annotations %v", pod.Annotations)
		}
	}
	for _, node := range nodes {
		open := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"taints":[]}}`))
		if err := cluster.Client().Patch(t.Context(), node.DeepCopy(), open); err != nil {
			t.Fatal(err)
		}
	}
	used := map[string]int{}
	eventually(t, "placing the waiting pods", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := cluster.Client().List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		clear(used)
		bound := 0
		for i := range pods.Items {
			if node := pods.Items[i].Spec.NodeName; node != "" {
				used[node]++
				bound++
			}
		}
		return bound == 64, nil
	})
	if len(used) != 8 {
		t.Errorf("the pods are on %d nodes, want 8: %v", len(used), used)
	}
}

// crossNamespace is a term that reaches into all namespaces.
var crossNamespace = corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{
	TopologyKey: corev1.LabelHostname, NamespaceSelector: &metav1.LabelSelector{},
	LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
}}

// A quota that forbids pods with affinity across namespaces refuses such a pod of
// a user, and none because of us.
func TestQuotaOnCrossNamespaceAffinity(t *testing.T) {
	withNodes(t, controlplane.Nodes("quota", 1, node8))
	namespace := optedIn(t, "quota")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "no-cross-namespace"},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
			ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopeCrossNamespacePodAffinity, Operator: corev1.ScopeSelectorOpExists},
			}},
		},
	}
	if err := cluster.Client().Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Client().Delete(context.WithoutCancel(t.Context()), quota); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "waiting for the quota controller", func(ctx context.Context) (bool, error) {
		err := cluster.Client().Get(ctx, client.ObjectKeyFromObject(quota), quota)
		return len(quota.Status.Hard) > 0, err
	})
	// The API server's admission reads quotas from a cache of its own, a moment
	// behind.
	eventually(t, "the quota refusing a user's pod", func(ctx context.Context) (bool, error) {
		pod := with(gpuPod(1), func(p *corev1.Pod) {
			p.Namespace, p.Name = namespace, "cross"
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{crossNamespace},
			}}
		})
		err := cluster.Client().Create(ctx, pod, client.DryRunAll)
		if err != nil && !apierrors.IsForbidden(err) {
			return false, err
		}
		return err != nil, nil
	})
	for name, tc := range map[string]struct {
		gpus int64
		want string
	}{"ranked": {1, config.SteeringRanked}, "late": {9, config.SteeringLate}} {
		if pod := create(t, namespace, name, gpuPod(tc.gpus)); pod.Annotations[config.AnnotationSteering] != tc.want {
			t.Errorf("%s: annotations %v", name, pod.Annotations)
		}
	}
}

// A user's own pod affinity would be outvoted by a late term, so there is none.
func TestUserPodAffinityGetsNoLateTerm(t *testing.T) {
	withNodes(t, controlplane.Nodes("own-affinity", 1, node8))
	user := &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
		Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		},
	}}}
	pod := create(t, optedIn(t, "own-affinity"), "pod", with(gpuPod(9), func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: user}
	}))
	if diff := cmp.Diff(user, pod.Spec.Affinity.PodAffinity); diff != "" {
		t.Errorf("pod affinity:\n%s", diff)
	}
	if label, ok := pod.Labels[config.LabelLate]; ok {
		t.Errorf("late label %q", label)
	}
}

// Waiting pods draw those of the same resource name, never others.
func TestLateTermsByResourceName(t *testing.T) {
	withNodes(t, controlplane.Nodes("late-names", 1, node8))
	namespace := optedIn(t, "late-names")
	values := map[string]bool{}
	for i, name := range []corev1.ResourceName{"nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.5gb"} {
		pod := create(t, namespace, fmt.Sprintf("pod-%d", i), with(gpuPod(0), func(p *corev1.Pod) { setResource(p, name, 9) }))
		terms := pod.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		if len(terms) != 1 {
			t.Fatalf("%s: terms %+v", name, terms)
		}
		want := map[string]string{config.LabelLate: pod.Labels[config.LabelLate]}
		if diff := cmp.Diff(want, terms[0].PodAffinityTerm.LabelSelector.MatchLabels); diff != "" {
			t.Errorf("%s: the term selects others than the pod's own kind:\n%s", name, diff)
		}
		values[pod.Labels[config.LabelLate]] = true
	}
	if len(values) != 3 {
		t.Errorf("three resource names have the labels %v", values)
	}
}
