package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// gpuNode is a node with so many of a GPU resource, and CPU and memory to match.
func gpuNode(name string, gpus map[string]int, options ...controlplane.NodeOption) *corev1.Node {
	allocatable := map[string]string{"cpu": "96", "memory": "1152Gi"}
	for resource, count := range gpus {
		allocatable[resource] = fmt.Sprint(count)
	}
	return controlplane.Node(name, allocatable, options...)
}

// place creates the pod, waits until it is bound and the webhook has seen that,
// and returns the node.
func place(t *testing.T, namespace, name string, pod *corev1.Pod) string {
	t.Helper()
	node := waitBound(t, create(t, namespace, name, pod))
	if err := cluster.WaitIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	return node
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func(ctx context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// remove deletes the pod at once and waits until the webhook has seen that.
func remove(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := cluster.Client().Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "deleting "+pod.Name, func(ctx context.Context) (bool, error) {
		err := cluster.Client().Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err := cluster.WaitIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Kubernetes issue 68036: nodes with 4, 4 and 2 devices; a pod with 2 devices goes
// to the node with 2 and leaves the large ones whole.
func TestSmallestNodeThatFits(t *testing.T) {
	withNodes(t, []*corev1.Node{
		gpuNode("four-a", map[string]int{"nvidia.com/gpu": 4}),
		gpuNode("four-b", map[string]int{"nvidia.com/gpu": 4}),
		gpuNode("two", map[string]int{"nvidia.com/gpu": 2}),
	})
	if node := place(t, optedIn(t, "issue-68036"), "pod", gpuPod(2)); node != "two" {
		t.Errorf("the pod is on %s", node)
	}
}

// Kueue issue 4474: nodes with 2, 1 and 1 free; two pods with one GPU leave the
// node with 2 free for a pod that needs both.
func TestLargeNodeStaysFree(t *testing.T) {
	withNodes(t, []*corev1.Node{
		gpuNode("two", map[string]int{"nvidia.com/gpu": 2}),
		gpuNode("one-a", map[string]int{"nvidia.com/gpu": 1}),
		gpuNode("one-b", map[string]int{"nvidia.com/gpu": 1}),
	})
	namespace := optedIn(t, "kueue-4474")
	for _, name := range []string{"first", "second"} {
		if node := place(t, namespace, name, gpuPod(1)); node == "two" {
			t.Errorf("the %s pod is on the node with 2 GPUs", name)
		}
	}
	if node := place(t, namespace, "both", gpuPod(2)); node != "two" {
		t.Errorf("the pod with 2 GPUs is on %s", node)
	}
}

// Kubernetes issue 99630: the replicas of a set of 4 and of a set of 2, created at
// once, stay together: each set on one node.
func TestReplicasStayTogether(t *testing.T) {
	withNodes(t, controlplane.Nodes("four", 4, map[string]string{"cpu": "48", "memory": "576Gi", "nvidia.com/gpu": "4"}))
	namespace := optedIn(t, "issue-99630")
	for _, replicas := range []int{4, 2} {
		nodes := placeReplicas(t, namespace, replicas)
		if slices.Sort(nodes); len(slices.Compact(slices.Clone(nodes))) != 1 {
			t.Errorf("the %d replicas are on %v", replicas, nodes)
		}
	}
}

// placeReplicas creates a ReplicaSet of pods with one GPU and returns where they
// went.
func placeReplicas(t *testing.T, namespace string, replicas int) []string {
	t.Helper()
	name := fmt.Sprintf("set-%d", replicas)
	labels := map[string]string{"app": name}
	count := int32(replicas)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: gpuPod(1).Spec},
		},
	}
	if err := cluster.Client().Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the pods, which it would make anew
		ctx := context.WithoutCancel(t.Context())
		if err := cluster.Client().Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
			t.Error(err)
		}
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := cluster.Client().Get(ctx, client.ObjectKeyFromObject(set), &appsv1.ReplicaSet{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
		if err != nil {
			t.Error(err)
		}
	})
	var nodes []string
	eventually(t, "placing "+name, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := cluster.Client().List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
			return false, err
		}
		nodes = nil
		for i := range pods.Items {
			if node := pods.Items[i].Spec.NodeName; node != "" {
				nodes = append(nodes, node)
			}
		}
		return len(nodes) == replicas, nil
	})
	if err := cluster.WaitIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	return nodes
}

// Resource names are never added up: each pod is packed by the name it asks for,
// on nodes that offer several.
func TestHeterogeneousNames(t *testing.T) {
	const nvidia, mig, amd = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu"
	all := map[string]int{nvidia: 8, mig: 7, amd: 8}
	withNodes(t, []*corev1.Node{gpuNode("mixed-a", all), gpuNode("mixed-b", all), gpuNode("mixed-c", all)})
	namespace := optedIn(t, "heterogeneous")
	want := map[string]string{nvidia: "mixed-a", mig: "mixed-b", amd: "mixed-c"}
	pod := func(name string, count int64) *corev1.Pod {
		p := gpuPod(0)
		setResource(p, corev1.ResourceName(name), count)
		return p
	}
	i := 0
	for name, node := range want { // past the scheduler, as existing load
		i++
		running := create(t, namespace, fmt.Sprintf("running-%d", i), with(pod(name, int64(i)), func(p *corev1.Pod) { p.Spec.NodeName = node }))
		waitBound(t, running)
	}
	if err := cluster.WaitIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, node := range want {
		i++
		if got := place(t, namespace, fmt.Sprintf("new-%d", i), pod(name, 1)); got != node {
			t.Errorf("the pod with %s is on %s, the one running is on %s", name, got, node)
		}
	}
}
