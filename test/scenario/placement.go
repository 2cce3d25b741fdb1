package scenario

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GPU is the resource name that the scenarios use.
const GPU corev1.ResourceName = "nvidia.com/gpu"

// Placement says where the pods of a namespace are.
type Placement struct {
	// Nodes, by name.
	Nodes []NodeUse `json:"nodes"`
	// Pending is how many pods have no node.
	Pending int `json:"pending"`
}

// NodeUse is one node and the GPUs in use on it.
type NodeUse struct {
	Name string `json:"name"`
	GPUs int    `json:"gpus"`
	// Pods are the GPUs of each pod on the node.
	Pods []int `json:"pods,omitempty"`
}

// Used is how many GPUs are in use.
func (n NodeUse) Used() int {
	used := 0
	for _, gpus := range n.Pods {
		used += gpus
	}
	return used
}

// NodesUsed is how many nodes hold a GPU pod.
func (p Placement) NodesUsed() int {
	return p.count(func(n NodeUse) bool { return len(n.Pods) > 0 })
}

// NodesFull is how many nodes have no GPU free.
func (p Placement) NodesFull() int {
	return p.count(func(n NodeUse) bool { return n.Used() == n.GPUs })
}

// Node returns one node's use.
func (p Placement) Node(name string) NodeUse {
	for _, n := range p.Nodes {
		if n.Name == name {
			return n
		}
	}
	return NodeUse{}
}

func (p Placement) count(match func(NodeUse) bool) int {
	count := 0
	for _, n := range p.Nodes {
		if match(n) {
			count++
		}
	}
	return count
}

// readPlacement reads nodes and bindings from the API server.
func readPlacement(ctx context.Context, c client.Client, namespace string) (Placement, error) {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return Placement{}, fmt.Errorf("listing nodes: %w", err)
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return Placement{}, fmt.Errorf("listing pods: %w", err)
	}
	var p Placement
	onNode := map[string][]int{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" {
			p.Pending++
			continue
		}
		onNode[pod.Spec.NodeName] = append(onNode[pod.Spec.NodeName], gpusOf(pod))
	}
	for i := range nodes.Items {
		quantity := nodes.Items[i].Status.Allocatable[GPU]
		name := nodes.Items[i].Name
		p.Nodes = append(p.Nodes, NodeUse{Name: name, GPUs: int(quantity.Value()), Pods: onNode[name]})
	}
	slices.SortFunc(p.Nodes, func(a, b NodeUse) int { return cmp.Compare(a.Name, b.Name) })
	return p, nil
}

func gpusOf(pod *corev1.Pod) int {
	quantity := pod.Spec.Containers[0].Resources.Limits[GPU]
	return int(quantity.Value())
}
