package controlplane

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// defaultPodsPerNode is the kubelet's default.
	defaultPodsPerNode = "110"

	// createParallelism is how many requests CreateNodes has in flight.
	createParallelism = 32
)

// NodeOption changes a node that Node makes.
type NodeOption func(*corev1.Node)

// WithLabels adds labels.
func WithLabels(labels map[string]string) NodeOption {
	return func(node *corev1.Node) {
		for key, value := range labels {
			node.Labels[key] = value
		}
	}
}

// WithZone puts the node into a zone.
func WithZone(zone string) NodeOption {
	return WithLabels(map[string]string{corev1.LabelTopologyZone: zone})
}

// WithTaints adds taints.
func WithTaints(taints ...corev1.Taint) NodeOption {
	return func(node *corev1.Node) {
		node.Spec.Taints = append(node.Spec.Taints, taints...)
	}
}

// WithoutKwok keeps kwok away from the node and its pods: the test plays the
// kubelet.
func WithoutKwok() NodeOption {
	return func(node *corev1.Node) {
		delete(node.Annotations, KwokNodeAnnotation)
	}
}

// Node returns a healthy fake node. Its allocatable resources are given as
// quantities, name -> quantity; room for 110 pods is added.
func Node(name string, allocatable map[string]string, options ...NodeOption) *corev1.Node {
	resources := corev1.ResourceList{corev1.ResourcePods: resource.MustParse(defaultPodsPerNode)}
	for name, quantity := range allocatable {
		resources[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{KwokNodeAnnotation: "fake"},
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelArchStable: "amd64",
				corev1.LabelOSStable:   "linux",
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    resources.DeepCopy(),
			Allocatable: resources,
			Conditions:  healthyConditions(),
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}},
			NodeInfo:    corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux"},
		},
	}
	for _, option := range options {
		option(node)
	}
	return node
}

// Nodes returns count equal nodes named prefix-0000, prefix-0001 and so on.
func Nodes(prefix string, count int, allocatable map[string]string, options ...NodeOption) []*corev1.Node {
	nodes := make([]*corev1.Node, count)
	for i := range nodes {
		nodes[i] = Node(fmt.Sprintf("%s-%04d", prefix, i), allocatable, options...)
	}
	return nodes
}

// healthyConditions are what a kubelet reports when all is well.
func healthyConditions() []corev1.NodeCondition {
	now := metav1.Now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
	}
}

// CreateNodes creates nodes that are Ready and take pods when it returns. Two
// requests per node are enough because the API server accepts the status of a
// new node, as it does for a kubelet that registers itself.
func (cp *ControlPlane) CreateNodes(ctx context.Context, nodes ...*corev1.Node) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(createParallelism)
	for _, node := range nodes {
		group.Go(func() error {
			if err := cp.createNode(ctx, node); err != nil {
				return fmt.Errorf("creating node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// createNode creates one node. The admission plugin TaintNodesByCondition gives
// every new node a not-ready taint, which the node lifecycle controller of
// kube-controller-manager takes away from a Ready one. The patch does the same,
// with or without that controller, and before the node is used.
func (cp *ControlPlane) createNode(ctx context.Context, node *corev1.Node) error {
	taints := node.Spec.Taints
	created := node.DeepCopy()
	if err := cp.client.Create(ctx, created); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": taints}})
	if err != nil {
		return err
	}
	return cp.client.Patch(ctx, created, client.RawPatch(types.MergePatchType, patch))
}
