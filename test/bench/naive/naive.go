// Package naive decides as a webhook without an index does: the benchmarks' measure
// of what an index is worth.
package naive

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
)

// Scan does what a webhook without an index does for each request: it adds up the
// GPUs of all pods by node and scores all nodes, by 100*allocated/allocatable.
type Scan struct {
	nodes []*corev1.Node
	pods  []*corev1.Pod
}

// New returns the cluster of a shape and size.
func New(s *cluster.Shape, count int) *Scan {
	n := &Scan{}
	for i := range count {
		n.nodes = append(n.nodes, s.Node(i))
		s.Pods(i, func(p *corev1.Pod) { n.pods = append(n.pods, p.DeepCopy()) })
	}
	return n
}

// Decide returns the node for the pod, empty for none.
func (n *Scan) Decide(pod *corev1.Pod) string {
	used := map[string]int64{}
	for _, p := range n.pods {
		if p.Status.Phase == corev1.PodRunning {
			used[p.Spec.NodeName] += gpusOf(p)
		}
	}
	best, bestScore := "", int64(-1)
	for _, node := range n.nodes {
		if selector := pod.Spec.NodeSelector["pool"]; selector != "" && node.Labels["pool"] != selector {
			continue
		}
		allocatable := node.Status.Allocatable.Name(cluster.GPU, "").Value()
		if allocatable-used[node.Name] < gpusOf(pod) {
			continue
		}
		if score := nodes.OriginScore(used[node.Name], allocatable); score > bestScore {
			best, bestScore = node.Name, score
		}
	}
	return best
}

func gpusOf(pod *corev1.Pod) int64 {
	var sum int64
	for i := range pod.Spec.Containers {
		sum += pod.Spec.Containers[i].Resources.Requests.Name(cluster.GPU, "").Value()
	}
	return sum
}
