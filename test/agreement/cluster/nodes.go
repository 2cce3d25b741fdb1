package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Nodes returns that many random nodes, in random order.
func (g *Generator) Nodes(count int) []*corev1.Node {
	nodes := make([]*corev1.Node, count)
	for i := range nodes {
		nodes[i] = g.Node(fmt.Sprintf("n%02d", i))
	}
	g.Shuffle(count, func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

// Node is a random node. Allocatable amounts are as crooked as kubelets report
// them.
func (g *Generator) Node(name string) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:               name,
			corev1.LabelTopologyZone:           One(g, "a", "b", "c"),
			"karpenter.sh/capacity-type":       One(g, "spot", "on-demand"),
			"node.kubernetes.io/instance-type": One(g, "small", "large"),
		}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:              resource.MustParse(One(g, "4", "7910m", "16", "31850m", "96", "191450m")),
				corev1.ResourceMemory:           resource.MustParse(One(g, "16Gi", "64000Mi", "130461580Ki", "1152Gi", "2000G")),
				corev1.ResourcePods:             resource.MustParse(One(g, "110", "110", "58", "250", "5")),
				corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Images:     g.nodeImages(),
		},
	}
	for _, gpu := range Some(g, 60, NVIDIA, AMD, MIG) {
		n.Status.Allocatable[corev1.ResourceName(gpu)] = *resource.NewQuantity(int64(One(g, 1, 2, 4, 8, 8, 16)), resource.DecimalSI)
	}
	for _, key := range Some(g, 15, "soft-1", "soft-2", "soft-3") {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: One(g, "", "x"), Effect: corev1.TaintEffectPreferNoSchedule})
	}
	if g.Plain {
		return n
	}
	if g.Chance(10) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "hard", Effect: One(g, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)})
	}
	if g.Chance(5) {
		n.Status.Allocatable[corev1.ResourceName(NVIDIA)] = resource.MustParse("0")
	}
	if g.Chance(3) {
		delete(n.Status.Allocatable, One(g, corev1.ResourceCPU, corev1.ResourceMemory))
	}
	if g.Targets {
		return n
	}
	if g.Chance(5) {
		n.Spec.Unschedulable = true
	}
	if g.Chance(3) {
		n.Status.Conditions[0].Status = One(g, corev1.ConditionFalse, corev1.ConditionUnknown)
	}
	if g.Chance(3) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "DeletionCandidateOfClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule})
	}
	return n
}

// images that nodes have and pods run. A kubelet reports every name of an image,
// with tag and with digest.
var images = []string{
	"train:latest", "train:1.2", "registry.example:5000/team/train:latest", "quay.io/team/serve:v3",
	"quay.io/team/serve@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "tiny:latest",
}

func (g *Generator) nodeImages() []corev1.ContainerImage {
	var out []corev1.ContainerImage
	for _, name := range Some(g, 40, images...) {
		size := int64(1+g.IntN(6000)) << 20
		switch {
		case name == "tiny:latest":
			size = 700_000
		case g.SameSizes:
			size = int64(len(name)) * 77_777_777
		}
		out = append(out, corev1.ContainerImage{Names: []string{name}, SizeBytes: size})
	}
	return out
}

// image is what a pod's container names: with or without a tag.
func (g *Generator) image() string {
	return One(g, append([]string{"train", "registry.example:5000/team/train", "quay.io/team/serve", "unknown:7", "tiny"}, images...)...)
}
