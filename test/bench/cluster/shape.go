package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// GPU is the resource of the nodes.
	GPU = corev1.ResourceName("nvidia.com/gpu")
	// Namespace is that of all pods.
	Namespace = "team-a"
	// PodsPerNode is how many pods run on each node; those that use no GPU are small
	// ones, as agents are.
	PodsPerNode = 30
)

// Shape is a kind of cluster, and the pod that comes to it.
type Shape struct {
	Name string
	// GPUs and Used are the GPUs of the i-th node, and how many of them one-GPU pods
	// use.
	GPUs, Used func(i int) int
	// pool is the value of the i-th node's label pool; Selector that of the pod's
	// node selector. Empty for none.
	pool     func(i int) string
	Selector string
	// NothingFits: no node can take the pod.
	NothingFits bool
	// Least is how many nodes make sense at least.
	Least int
}

// Shapes are all there are.
var Shapes = []Shape{
	{Name: "homogeneous", GPUs: always(8), Used: halfFull(always(8))},
	{Name: "openb", GPUs: openbGPUs, Used: halfFull(openbGPUs)},
	{Name: "1%-selector", GPUs: always(8), Used: halfFull(always(8)), pool: rarePool, Selector: "rare", Least: 1000},
	{Name: "all full", GPUs: always(8), Used: always(8), NothingFits: true},
	{Name: "all empty", GPUs: always(8), Used: always(0)},
}

// Find returns the shape of that name, nil if there is none.
func Find(name string) *Shape {
	for i := range Shapes {
		if Shapes[i].Name == name {
			return &Shapes[i]
		}
	}
	return nil
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

// Node returns the i-th node.
func (s *Shape) Node(i int) *corev1.Node {
	name := NodeName(i)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1152Gi"),
				corev1.ResourcePods: resource.MustParse("110"), GPU: *resource.NewQuantity(int64(s.GPUs(i)), resource.DecimalSI),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if s.pool != nil {
		n.Labels["pool"] = s.pool(i)
	}
	return n
}

// NodeName is the name of the i-th node.
func NodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// Pods calls each for the pods of the i-th node. They are valid during the call
// only.
func (s *Shape) Pods(i int, each func(*corev1.Pod)) {
	trainer, agent := gpuPod(), NewPod("100m", "128Mi")
	for j := range max(PodsPerNode, s.Used(i)) {
		pod := agent
		if j < s.Used(i) {
			pod = trainer
		}
		pod.UID, pod.Spec.NodeName = types.UID(fmt.Sprintf("%d-%d", i, j)), NodeName(i)
		pod.Name = string(pod.UID)
		each(pod)
	}
}

// Incoming is the pod to be placed.
func (s *Shape) Incoming() *corev1.Pod {
	pod := gpuPod()
	if s.Selector != "" {
		pod.Spec.NodeSelector = map[string]string{"pool": s.Selector}
	}
	return pod
}

func gpuPod() *corev1.Pod {
	pod := NewPod("8", "64Gi")
	pod.Spec.Containers[0].Resources.Requests[GPU] = resource.MustParse("1")
	return pod
}

// NewPod returns a running pod with those requests.
func NewPod(cpu, memory string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "pod"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// FreeGPUs is how many of the incoming pods fit into a cluster of that size.
func (s *Shape) FreeGPUs(nodes int) int {
	free := 0
	for i := range nodes {
		if s.Selector == "" || s.pool(i) == s.Selector {
			free += s.GPUs(i) - s.Used(i)
		}
	}
	return free
}

// PodCount is how many pods a cluster of that size has.
func (s *Shape) PodCount(nodes int) int {
	count := 0
	for i := range nodes {
		count += max(PodsPerNode, s.Used(i))
	}
	return count
}

// CheckTarget returns an error when a node is the wrong answer. All answers that
// leave equally many GPUs are right.
func (s *Shape) CheckTarget(target string) error {
	if s.NothingFits != (target == "") {
		return fmt.Errorf("target %q, nothing fits is %v", target, s.NothingFits)
	}
	if target == "" {
		return nil
	}
	var i int
	if _, err := fmt.Sscanf(target, "node-%d", &i); err != nil {
		return fmt.Errorf("target %q: %w", target, err)
	}
	if s.Selector != "" && s.pool(i) != s.Selector {
		return fmt.Errorf("target %s is in pool %s", target, s.pool(i))
	}
	if s.GPUs(i)-s.Used(i) < 1 {
		return fmt.Errorf("target %s is full", target)
	}
	return nil
}
