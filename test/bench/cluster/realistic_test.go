package cluster

import (
	"testing"
	"time"
)

// Objects have the sizes that the benchmark of scale promises.
func TestRealisticSizes(t *testing.T) {
	r, err := NewRealistic("../../..")
	if err != nil {
		t.Fatal(err)
	}
	node := r.Node(7, time.Now())
	if size := node.Size(); size < 8<<10 || size > 14<<10 || len(node.Labels) != labelsPerNode || len(node.Status.Images) != imagesPerNode {
		t.Errorf("a node has %d bytes, %d labels, %d images", size, len(node.Labels), len(node.Status.Images))
	}
	for j := range PodsPerNode {
		pod := r.Pod(7, j)
		if size := pod.Size(); size < 3<<10 || size > 10<<10 {
			t.Errorf("pod %d has %d bytes", j, size)
		}
		if _, gpu := pod.Spec.Containers[0].Resources.Requests[GPU]; gpu != (j < gpuPodsPerNode) {
			t.Errorf("pod %d uses a GPU: %v", j, gpu)
		}
		if pod.Spec.NodeName != node.Name {
			t.Errorf("pod %d is on %s", j, pod.Spec.NodeName)
		}
	}
	if r.Pod(7, 1).UID == r.Pod(7, 2).UID || r.Pod(1, 1).UID == r.Pod(2, 1).UID {
		t.Error("pods share a UID")
	}
}
