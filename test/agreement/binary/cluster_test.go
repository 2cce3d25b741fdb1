package binary

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/agreement/cluster"
)

// Most pods are to fit on several nodes. From 100 nodes on the scheduler examines
// only a part.
const minNodes, maxNodes = 6, 12

// randomCluster is a random cluster in the control plane.
type randomCluster struct {
	*bed
	*cluster.Generator
	seed  uint64
	nodes []*corev1.Node
	ours  *cluster.Product
}

// newCluster creates the cluster of a seed and fills our index when the scheduler
// has seen all of it.
func newCluster(t *testing.T, b *bed, seed uint64) *randomCluster {
	t.Helper()
	c := &randomCluster{bed: b, Generator: cluster.NewGenerator(seed), seed: seed}
	c.Targets = true
	c.createNodes(t)
	pods := c.createRunning(t)
	c.settle(t, pods[len(pods)-1])
	for i, n := range c.nodes {
		c.nodes[i] = get(t, b, n, &corev1.Node{})
	}
	for i, p := range pods {
		pods[i] = get(t, b, p, &corev1.Pod{})
	}
	c.ours = cluster.NewProduct(t, b.cfg, time.Now, c.nodes, pods)
	return c
}

// createNodes creates them one by one: the scheduler takes the size of an image
// from the first node that has it.
func (c *randomCluster) createNodes(t *testing.T) {
	t.Helper()
	c.nodes = c.Nodes(minNodes + c.IntN(maxNodes-minNodes+1))
	for _, n := range c.nodes {
		n.Name = c.name(n.Name)
		n.Labels[corev1.LabelHostname] = n.Name
		if err := c.CreateNodes(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

// createRunning creates pods that have their nodes already, the last one without
// any request.
func (c *randomCluster) createRunning(t *testing.T) []*corev1.Pod {
	t.Helper()
	pods := c.Running(c.nodes, c.IntN(3*len(c.nodes)/2))
	for i, p := range pods {
		p.Name = c.name(p.Name)
		pods[i] = c.createStatus(t, p)
	}
	last := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Team, Name: c.name("last")},
		Spec:       corev1.PodSpec{NodeName: c.nodes[0].Name, Containers: []corev1.Container{{Name: "c", Image: "train"}}},
	}
	return append(pods, c.create(t, last))
}

// createStatus creates a pod with its status, and deletes it when it is to be
// terminating: nobody ends it then.
func (c *randomCluster) createStatus(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	status, terminating := pod.Status, pod.DeletionTimestamp != nil
	pod.DeletionTimestamp = nil
	pod = c.create(t, pod)
	pod.Status = status
	if c.version.LessThan(sameResizes) {
		pod.Status = corev1.PodStatus{Phase: status.Phase}
	}
	if err := c.Client().Status().Update(t.Context(), pod); err != nil {
		t.Fatalf("the status of pod %s: %v", pod.Name, err)
	}
	over := status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed
	if terminating && !over {
		if err := c.Client().Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	return pod
}

// create creates a pod and returns it as it is stored: the API server drops what its
// version has no use for. It takes overhead only from a RuntimeClass.
func (c *randomCluster) create(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	pod.UID, pod.CreationTimestamp = "", metav1.Time{}
	if len(pod.Spec.Overhead) > 0 {
		class := &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
			Handler:    "sandbox",
			Overhead:   &nodev1.Overhead{PodFixed: pod.Spec.Overhead},
		}
		if err := c.Client().Create(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		pod.Spec.RuntimeClassName, pod.Spec.Overhead = &class.Name, nil
	}
	if err := c.Client().Create(t.Context(), pod); err != nil {
		t.Fatalf("pod %s: %v", pod.Name, err)
	}
	return get(t, c.bed, pod, &corev1.Pod{})
}

// settle waits until the scheduler has seen the nodes and running pods, of which
// last was created last. It updates all nodes: the scheduler's view of a node
// counts the nodes that have an image as of the node's own last change. The last
// update of each kind is without consequence, and is handled after all others.
func (c *randomCluster) settle(t *testing.T, last *corev1.Pod) {
	t.Helper()
	for _, n := range c.nodes {
		c.annotate(t, n, "first")
	}
	lastNode := c.nodes[len(c.nodes)-1]
	c.annotate(t, lastNode, "second")
	c.annotate(t, last, "first")
	// CreateNodes updates each node too.
	const updates = 3
	if err := c.log.waitEvents(t.Context(), "Update event for node", lastNode.Name, updates); err != nil {
		t.Fatal(err)
	}
	if err := c.log.waitEvents(t.Context(), "Update event for scheduled pod", podKey(last), 1); err != nil {
		t.Fatal(err)
	}
}

func (c *randomCluster) annotate(t *testing.T, object client.Object, value string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"update": value}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Client().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// incoming creates a random pod that asks for GPUs, as the user sends it or as it
// leaves our webhook.
func (c *randomCluster) incoming(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := c.Incoming()
	pod.Name = c.name(pod.Name)
	if c.Chance(15) {
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: c.PodRequests()}
	}
	if c.Chance(50) {
		pod = cluster.Steered(pod, c.ours.Decide(pod))
	}
	return c.create(t, pod)
}

// waitScheduled waits until the scheduler has decided and returns the pod's node,
// or "" when it found none.
func (c *randomCluster) waitScheduled(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	var now *corev1.Pod
	err := wait.PollUntilContextTimeout(t.Context(), waitInterval, waitTimeout, true, func(context.Context) (bool, error) {
		now = get(t, c.bed, pod, &corev1.Pod{})
		return now.Spec.NodeName != "" || isUnschedulable(now), nil
	})
	if err != nil {
		t.Fatalf("seed %d, pod %s: waiting for the scheduler: %v", c.seed, pod.Name, err)
	}
	return now.Spec.NodeName
}

func isUnschedulable(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

// finish tells our index where the pod went, or takes the pod away, so that the
// scheduler does not try it again.
func (c *randomCluster) finish(t *testing.T, pod *corev1.Pod, node string) {
	t.Helper()
	if node != "" {
		c.ours.Index.SetPod(get(t, c.bed, pod, &corev1.Pod{}))
		return
	}
	if err := c.Client().Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	if err := c.log.waitEvents(t.Context(), "Delete event for unscheduled pod", podKey(pod), 1); err != nil {
		t.Fatal(err)
	}
}

// remove removes pods and nodes. The scheduler sees it before the nodes of the next
// cluster.
func (c *randomCluster) remove(t *testing.T) {
	t.Helper()
	err := c.Client().DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(cluster.Team), client.GracePeriodSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range c.nodes {
		if err := c.Client().Delete(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

// get reads an object into an empty one: what is gone would stay in the old one.
func get[T client.Object](t *testing.T, b *bed, object, empty T) T {
	t.Helper()
	if err := b.Client().Get(t.Context(), client.ObjectKeyFromObject(object), empty); err != nil {
		t.Fatal(err)
	}
	return empty
}

// name makes a name of this cluster only.
func (c *randomCluster) name(name string) string { return fmt.Sprintf("c%d-%s", c.seed, name) }

func podKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
