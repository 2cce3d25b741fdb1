package state

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// The example is a made-up cluster in the shape of a real one: sizes of nodes and pods
// have the shares that they have in the openb trace (github.com/alibaba/clusterdata,
// cluster-trace-gpu-v2023), on a quarter of its nodes. Its pods came and went while the
// scheduler put each on the node with the smallest part of its GPUs in use.

const (
	exampleGPU  = "nvidia.com/gpu"
	exampleSeed = 1
	// exampleEnded of a hundred pods with one GPU are over when the example is taken: the
	// holes that they left are what packing is about.
	exampleEnded = 25
)

var (
	exampleNamespaces = []string{"recommendation", "search", "speech", "vision"}
	exampleTime       = time.Date(2026, time.January, 15, 12, 0, 0, 0, time.UTC)
	// exampleNodes are the kinds of nodes: GPUs, CPUs, GiB of memory, and how many there
	// are, of 303 as many as 617, 54, 518 and 24 of 1,213.
	exampleNodes = []struct{ gpus, cpus, memory, count int64 }{
		{8, 96, 768, 154}, {4, 64, 384, 13}, {2, 32, 192, 130}, {1, 16, 96, 6},
	}
	// examplePods are the kinds of workloads: GPUs, CPUs and GiB of memory of each pod,
	// pods of each workload, and how many such workloads came before the example was
	// taken. In the trace 1 pod in 160 asks for 8 GPUs and 1 in 230 for 2 or 4.
	examplePods = []struct{ gpus, cpus, memory, pods, workloads int64 }{
		{8, 64, 512, 1, 6}, {4, 32, 256, 1, 2}, {2, 16, 96, 1, 2},
		{1, 4, 16, 20, 16}, {1, 8, 32, 12, 30}, {1, 8, 64, 5, 45}, {1, 12, 64, 2, 30},
	}
)

// Example returns the example cluster. It is the same every time.
func Example() *State {
	e := &exampleCluster{random: rand.New(rand.NewPCG(exampleSeed, 0))}
	e.addNodes()
	e.addPods()
	s := New(exampleTime, exampleNamespaces, e.nodes, e.pods)
	s.ServerVersion = "v" + config.NewestVersion.String() + ".0"
	return s
}

// ExamplePod returns a pod that is about to be created in the example cluster.
func ExamplePod() *corev1.Pod {
	pod := examplePod("vision", "classifier", 1, 8, 32)
	pod.Name, pod.GenerateName = "", pod.Name+"-"
	return pod
}

// exampleCluster is an example under construction.
type exampleCluster struct {
	random *rand.Rand
	nodes  []corev1.Node
	free   []exampleRoom
	pods   []corev1.Pod
}

// exampleRoom is what is free on a node, of how many GPUs.
type exampleRoom struct{ gpus, cpus, memory, all int64 }

func (e *exampleCluster) addNodes() {
	for _, kind := range exampleNodes {
		for i := range kind.count {
			e.nodes = append(e.nodes, exampleNode(fmt.Sprintf("gpu-%dx-%03d", kind.gpus, i+1), kind.gpus, kind.cpus, kind.memory))
			e.free = append(e.free, exampleRoom{kind.gpus, kind.cpus, kind.memory, kind.gpus})
		}
	}
	e.random.Shuffle(len(e.nodes), func(i, j int) {
		e.nodes[i], e.nodes[j] = e.nodes[j], e.nodes[i]
		e.free[i], e.free[j] = e.free[j], e.free[i]
	})
}

// addPods lets the largest pods come first, since they would find no node later, and
// the others in random order.
func (e *exampleCluster) addPods() {
	var come []*corev1.Pod
	small := 0 // where pods with one GPU begin
	for _, kind := range examplePods {
		for range kind.workloads {
			namespace := exampleNamespaces[e.random.IntN(len(exampleNamespaces))]
			workload := fmt.Sprintf("%s-%03d", [...]string{"serve", "train", "tune"}[e.random.IntN(3)], len(come)+1)
			for i := range kind.pods {
				pod := examplePod(namespace, workload, kind.gpus, kind.cpus, kind.memory)
				pod.Name = fmt.Sprintf("%s-%d", workload, i)
				pod.UID = types.UID(namespace + "/" + pod.Name)
				come = append(come, pod)
			}
		}
		if kind.gpus > 1 {
			small = len(come)
		}
	}
	e.random.Shuffle(len(come)-small, func(i, j int) {
		come[small+i], come[small+j] = come[small+j], come[small+i]
	})
	for _, pod := range come {
		e.place(pod)
	}
}

// place puts a pod on the node with the largest part of its GPUs free, and leaves out
// those that are over when the example is taken.
func (e *exampleCluster) place(pod *corev1.Pod) {
	requests := pod.Spec.Containers[0].Resources.Requests
	gpus, cpus := requests.Name(exampleGPU, resource.DecimalSI).Value(), requests.Cpu().Value()
	memory := requests.Memory().Value() >> 30
	best := -1
	for i, room := range e.free {
		if room.gpus >= gpus && room.cpus >= cpus && room.memory >= memory &&
			(best < 0 || room.gpus*e.free[best].all > e.free[best].gpus*room.all) {
			best = i
		}
	}
	if best < 0 {
		return
	}
	room := &e.free[best]
	room.gpus, room.cpus, room.memory = room.gpus-gpus, room.cpus-cpus, room.memory-memory
	if gpus == 1 && e.random.IntN(100) < exampleEnded {
		return
	}
	pod.Spec.NodeName = e.nodes[best].Name
	pod.Status.Phase = corev1.PodRunning
	e.pods = append(e.pods, *pod)
}

func exampleNode(name string, gpus, cpus, memory int64) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:              name,
			CreationTimestamp: metav1.NewTime(exampleTime.AddDate(0, -1, 0)),
			Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				corev1.LabelInstanceTypeStable: fmt.Sprintf("gpu-%dx", gpus),
			},
		},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(memory<<30, resource.BinarySI),
				corev1.ResourcePods: *resource.NewQuantity(110, resource.DecimalSI), exampleGPU: *resource.NewQuantity(gpus, resource.DecimalSI),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// examplePod returns a pod of a workload, not created yet and without a name of its own.
func examplePod(namespace, workload string, gpus, cpus, memory int64) *corev1.Pod {
	controller, owner := true, "ReplicaSet"
	if !strings.HasPrefix(workload, "serve") && workload != "classifier" {
		owner = "Job"
	}
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(memory<<30, resource.BinarySI),
		exampleGPU: *resource.NewQuantity(gpus, resource.DecimalSI),
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: workload, Namespace: namespace, CreationTimestamp: metav1.NewTime(exampleTime.AddDate(0, 0, -1)),
			OwnerReferences: []metav1.OwnerReference{{Kind: owner, Name: workload, UID: types.UID(namespace + "/" + workload), Controller: &controller}},
		},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.com/" + namespace + ":1",
				Resources: corev1.ResourceRequirements{Requests: amounts, Limits: corev1.ResourceList{exampleGPU: amounts[exampleGPU]}},
			}},
		},
	}
}
