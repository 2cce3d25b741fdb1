package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

const capacityType = "karpenter.sh/capacity-type"

// Random pods with preferences of their own are placed without us and, on the
// same cluster, with us. None may land in a worse class of the user's with us.
func TestUserPreferenceIsNeverReversed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	zones, types := []string{"a", "b", "c"}, []string{"spot", "on-demand"}
	var nodes []*corev1.Node
	byName := map[string]*corev1.Node{}
	for i := range 9 {
		node := gpuNode(fmt.Sprintf("prefer-%d", i), map[string]int{"nvidia.com/gpu": 2 << random.IntN(3)},
			controlplane.WithZone(zones[random.IntN(3)]), controlplane.WithLabels(map[string]string{capacityType: types[random.IntN(2)]}))
		nodes = append(nodes, node)
		byName[node.Name] = node
	}
	withNodes(t, nodes)
	steered, plain := optedIn(t, "preferences-with"), otherNamespace(t, "preferences-without")
	compared, better := 0, 0
	for i := range 25 {
		name := fmt.Sprintf("pod-%d", i)
		pod := gpuPod(1 + random.Int64N(2))
		terms := make([]corev1.PreferredSchedulingTerm, 1+random.IntN(2))
		for j := range terms {
			key, values := corev1.LabelTopologyZone, zones
			if random.IntN(2) == 0 {
				key, values = capacityType, types
			}
			terms[j] = corev1.PreferredSchedulingTerm{Weight: 1 + random.Int32N(100), Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{values[random.IntN(len(values))]}}},
			}}
		}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
		user, err := nodeaffinity.NewPreferredSchedulingTerms(terms)
		if err != nil {
			t.Fatal(err)
		}
		without := create(t, plain, name, pod)
		class := user.Score(byName[waitBound(t, without)])
		remove(t, without)
		with := place(t, steered, name, pod)
		compared++
		if got := user.Score(byName[with]); got < class {
			t.Errorf("%s is on %s, where its preferences add up to %d; without us on %s, where they add up to %d", name, with, got, without.Spec.NodeName, class)
		} else if got > class {
			better++
		}
		if free(t, nodes) < 4 {
			break
		}
	}
	t.Logf("of %d pods %d landed in a better class with us", compared, better)
	if compared < 10 {
		t.Errorf("only %d pods were compared", compared)
	}
}

// free is how many GPUs of the nodes no pod has.
func free(t *testing.T, nodes []*corev1.Node) int64 {
	t.Helper()
	var sum int64
	for _, left := range freePerNode(t, nodes) {
		sum += left
	}
	return sum
}

// otherNamespace creates a namespace that has not opted in; its pods go with it.
func otherNamespace(t *testing.T, prefix string) string {
	t.Helper()
	name := optedIn(t, prefix)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"gpu-binpacker.io/enabled":null}}}`))
	if err := cluster.Client().Patch(t.Context(), namespace, patch); err != nil {
		t.Fatal(err)
	}
	return name
}

// A pod of high priority on a full cluster preempts exactly as without us: the
// same number of victims, on the node with the cheaper ones.
func TestPreemptionIsUntouched(t *testing.T) {
	for name, value := range map[string]int32{"e2e-low": 10, "e2e-middle": 20, "e2e-high": 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if err := cluster.Client().Create(t.Context(), class); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for name, namespaceOf := range map[string]func(*testing.T, string) string{"without": otherNamespace, "with": optedIn} {
		t.Run(name, func(t *testing.T) {
			withNodes(t, []*corev1.Node{
				gpuNode("cheap", map[string]int{"nvidia.com/gpu": 4}),
				gpuNode("dear", map[string]int{"nvidia.com/gpu": 4}),
			})
			namespace := namespaceOf(t, "preemption-"+name)
			for node, class := range map[string]string{"cheap": "e2e-low", "dear": "e2e-middle"} {
				for i := range 4 {
					create(t, namespace, fmt.Sprintf("%s-%d", node, i), with(gpuPod(1), func(p *corev1.Pod) {
						p.Spec.NodeName, p.Spec.PriorityClassName = node, class
						p.Labels = map[string]string{"victim": node}
					}))
				}
			}
			if err := cluster.WaitIndex(t.Context()); err != nil {
				t.Fatal(err)
			}
			pod := create(t, namespace, "high", with(gpuPod(2), func(p *corev1.Pod) { p.Spec.PriorityClassName = "e2e-high" }))
			if node := waitBound(t, pod); node != "cheap" {
				t.Errorf("the pod is on %s", node)
			}
			for node, want := range map[string]int{"cheap": 2, "dear": 4} {
				var left corev1.PodList
				if err := cluster.Client().List(t.Context(), &left, client.InNamespace(namespace), client.MatchingLabels{"victim": node}); err != nil {
					t.Fatal(err)
				}
				if len(left.Items) != want {
					t.Errorf("%d pods are left on node %s, want %d", len(left.Items), node, want)
				}
			}
		})
	}
}
