package simulate

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

const nvidia = "nvidia.com/gpu"

var taken = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// gpuNode is a ready node with 96 CPUs, 1 TiB and so many GPUs.
func gpuNode(name string, gpus int, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				"cpu": resource.MustParse("96"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse("110"),
				nvidia: *resource.NewQuantity(int64(gpus), resource.DecimalSI),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// gpuPod is a pod with so many GPUs, 8 CPUs and 64 GiB for each, on a node or, for
// "", waiting. Pods are created one second after another.
func gpuPod(name, node string, gpus int, change ...func(*corev1.Pod)) corev1.Pod {
	pods++
	list := corev1.ResourceList{"cpu": *resource.NewQuantity(int64(8*gpus), resource.DecimalSI), "memory": *resource.NewQuantity(int64(gpus)<<36, resource.BinarySI)}
	if gpus > 0 {
		list[nvidia] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "team", UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(taken.Add(time.Duration(pods-1e6) * time.Second)),
		},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

// pods is how many gpuPod has made.
var pods int

func ownedBy(kind string) func(*corev1.Pod) {
	yes := true
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "o", UID: "o", Controller: &yes}}
	}
}

func ending(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: taken} }

// onlyOn is required affinity to one node by its name.
func onlyOn(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			}}},
		}}}
	}
}

func cluster(nodes []corev1.Node, pods ...corev1.Pod) *state.State {
	return state.New(taken, nil, nodes, pods)
}

// nodesNamed are n1, n2, ... with 8 GPUs each.
func nodesNamed(count int) []corev1.Node {
	var nodes []corev1.Node
	for i := range count {
		nodes = append(nodes, gpuNode(fmt.Sprintf("n%d", i+1), 8))
	}
	return nodes
}

func simulation(t testing.TB, s *state.State, o Options) *Simulation {
	t.Helper()
	sim, err := New(s, config.Default(), o)
	if err != nil {
		t.Fatal(err)
	}
	return sim
}

func pack(t testing.TB, sim *Simulation, order Order) Packing {
	t.Helper()
	p, err := sim.Pack(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
