package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Random batches of copies of a pod are placed at once on unequal nodes, with
// departures in between. During a batch nodes only fill up. So whatever the order
// in which the scheduler took the pods: if a node that a pod lists earlier than
// the one it is on has room even at the end of the batch, the scheduler preferred
// the wrong one.
func TestEarlierListedNodesFillFirst(t *testing.T) {
	const batches = 8 // of 3 to 12 pods, on 20 nodes with about 75 GPUs
	random := rand.New(rand.NewPCG(3, 4))
	var nodes []*corev1.Node
	for i := range 20 {
		nodes = append(nodes, gpuNode(fmt.Sprintf("order-%d", i), map[string]int{gpuName: 1 << random.IntN(4)}))
	}
	withNodes(t, nodes)
	namespace := optedIn(t, "order")
	checked, onTarget := 0, 0
	for batch := range batches {
		pods := createBatch(t, namespace, fmt.Sprintf("batch-%d", batch), randomPod(random), 3+random.IntN(10))
		left := freePerNode(t, nodes)
		for _, pod := range pods {
			list := listedOn(pod)
			at := slices.Index(list, pod.Spec.NodeName)
			if at < 0 {
				at = len(list)
			}
			for _, earlier := range list[:at] {
				if left[earlier] >= gpusOf(pod) {
					t.Errorf("%s with %d GPUs is on %s, but %s, listed before, has %d free; list %v",
						pod.Name, gpusOf(pod), pod.Spec.NodeName, earlier, left[earlier], list)
				}
			}
			checked++
			if at == 0 {
				onTarget++
			}
		}
		if batch%2 == 1 {
			removeHalf(t, random, namespace)
		}
	}
	t.Logf("%d pods checked, %d of them on their first node", checked, onTarget)
	if checked < 3*batches {
		t.Errorf("only %d pods were steered and placed", checked)
	}
}

const gpuName = "nvidia.com/gpu"

// randomPod asks for 1 or 2 GPUs and some CPU and memory.
func randomPod(random *rand.Rand) *corev1.Pod {
	pod := gpuPod(1 + random.Int64N(2))
	setResource(pod, corev1.ResourceCPU, 1+random.Int64N(12))
	setResource(pod, corev1.ResourceMemory, random.Int64N(128)<<30)
	return pod
}

// createBatch creates copies of a pod at once and returns those that were steered
// by a ranking, as they are when all are bound.
func createBatch(t *testing.T, namespace, name string, pod *corev1.Pod, count int) []*corev1.Pod {
	t.Helper()
	created := make([]*corev1.Pod, count)
	var group errgroup.Group
	for i := range created {
		created[i] = pod.DeepCopy()
		created[i].Namespace, created[i].Name = namespace, fmt.Sprintf("%s-%d", name, i)
		group.Go(func() error { return cluster.Client().Create(t.Context(), created[i]) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, p := range created {
		waitBound(t, p)
	}
	if err := cluster.WaitIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(created, func(p *corev1.Pod) bool {
		return p.Annotations[config.AnnotationSteering] != config.SteeringRanked
	})
}

// gpusOf is how many GPUs a stored pod asks for.
func gpusOf(pod *corev1.Pod) int64 {
	return pod.Spec.Containers[0].Resources.Requests.Name(gpuName, resource.DecimalSI).Value()
}

// freePerNode is how many GPUs of each node no pod has.
func freePerNode(t *testing.T, nodes []*corev1.Node) map[string]int64 {
	t.Helper()
	left := map[string]int64{}
	for _, n := range nodes {
		left[n.Name] = n.Status.Allocatable.Name(gpuName, resource.DecimalSI).Value()
	}
	var pods corev1.PodList
	if err := cluster.Client().List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		left[pods.Items[i].Spec.NodeName] -= gpusOf(&pods.Items[i])
	}
	return left
}

// removeHalf deletes pods of the namespace at random.
func removeHalf(t *testing.T, random *rand.Rand, namespace string) {
	t.Helper()
	var pods corev1.PodList
	if err := cluster.Client().List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if random.IntN(2) == 0 {
			remove(t, &pods.Items[i])
		}
	}
}

// listedOn returns the nodes of our terms on a pod, best first.
func listedOn(pod *corev1.Pod) []string {
	var ours []corev1.PreferredSchedulingTerm
	for _, term := range pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		if steering.IsTerm(&term) {
			ours = append(ours, term)
		}
	}
	slices.SortStableFunc(ours, func(a, b corev1.PreferredSchedulingTerm) int { return cmp.Compare(b.Weight, a.Weight) })
	names := make([]string, len(ours))
	for i := range ours {
		names[i] = ours[i].Preference.MatchFields[0].Values[0]
	}
	return names
}
