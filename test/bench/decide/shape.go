package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	gpu       corev1.ResourceName = "nvidia.com/gpu"
	namespace                     = "team"
	// podsPerNode is how many pods run on each node; those that use no GPU are small
	// ones, as agents are.
	podsPerNode = 30
)

// shape is a kind of cluster, and the pod that comes to it.
type shape struct {
	name string
	// gpus and used are the GPUs of the i-th node, and how many of them one-GPU pods
	// use.
	gpus, used func(i int) int
	// pool is the value of the i-th node's label pool; selector that of the pod's
	// node selector. Empty for none.
	pool     func(i int) string
	selector string
	// nothingFits: no node can take the pod.
	nothingFits bool
	// least is how many nodes make sense at least.
	least int
}

var shapes = []shape{
	{name: "homogeneous", gpus: always(8), used: halfFull(always(8))},
	{name: "openb", gpus: openbGPUs, used: halfFull(openbGPUs)},
	{name: "1%-selector", gpus: always(8), used: halfFull(always(8)), pool: rarePool, selector: "rare", least: 1000},
	{name: "all full", gpus: always(8), used: always(8), nothingFits: true},
	{name: "all empty", gpus: always(8), used: always(0)},
}

func always(n int) func(int) int { return func(int) int { return n } }

// halfFull fills every other node, all but one GPU on some, and leaves the others
// empty.
func halfFull(gpus func(int) int) func(int) int {
	return func(i int) int {
		switch {
		case i%2 == 1:
			return 0
		case i%10 == 0:
			return gpus(i) - 1
		default:
			return gpus(i)
		}
	}
}

// openbGPUs spreads node sizes as in the openb trace: of 100 nodes 14 have one GPU,
// 15 two, 8 four and 63 eight. 37 and 100 have no common factor, so that neighbours
// differ.
func openbGPUs(i int) int {
	switch place := i * 37 % 100; {
	case place < 14:
		return 1
	case place < 29:
		return 2
	case place < 37:
		return 4
	default:
		return 8
	}
}

// rarePool puts one node in a hundred, an empty one, into the pool rare.
func rarePool(i int) string {
	if i%100 == 1 {
		return "rare"
	}
	return "common"
}

// node returns the i-th node.
func (s *shape) node(i int) *corev1.Node {
	name := nodeName(i)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1152Gi"),
				corev1.ResourcePods: resource.MustParse("110"), gpu: *resource.NewQuantity(int64(s.gpus(i)), resource.DecimalSI),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if s.pool != nil {
		n.Labels["pool"] = s.pool(i)
	}
	return n
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// pods calls each for the pods of the i-th node. They are valid during the call
// only.
func (s *shape) pods(i int, each func(*corev1.Pod)) {
	trainer, agent := gpuPod(), newPod("100m", "128Mi")
	for j := range max(podsPerNode, s.used(i)) {
		pod := agent
		if j < s.used(i) {
			pod = trainer
		}
		pod.UID, pod.Spec.NodeName = types.UID(fmt.Sprintf("%d-%d", i, j)), nodeName(i)
		pod.Name = string(pod.UID)
		each(pod)
	}
}

// incoming is the pod to be placed.
func (s *shape) incoming() *corev1.Pod {
	pod := gpuPod()
	if s.selector != "" {
		pod.Spec.NodeSelector = map[string]string{"pool": s.selector}
	}
	return pod
}

func gpuPod() *corev1.Pod {
	pod := newPod("8", "64Gi")
	pod.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1")
	return pod
}

func newPod(cpu, memory string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}
