package agreement

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
)

// The GPU resources of random clusters.
const (
	nvidia = "nvidia.com/gpu"
	amd    = "amd.com/gpu"
	mig    = "nvidia.com/mig-1g.5gb"
)

// generator makes random objects: the same for the same seed.
type generator struct {
	*rand.Rand
	pods int
	// podLevel is the chance in percent that a pod has resources of its own,
	// beside its containers'.
	podLevel int
	// sameSizes gives an image the same size on every node.
	sameSizes bool
	// plain leaves out what breaks an assumption of the chain.
	plain bool
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 42))}
}

// one returns one of the values.
func one[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

// chance is true in percent of a hundred cases.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// some keeps each value with a chance in percent.
func some[T any](g *generator, percent int, values ...T) []T {
	var out []T
	for _, v := range values {
		if g.chance(percent) {
			out = append(out, v)
		}
	}
	return out
}

func (g *generator) nodes(count int) []*corev1.Node {
	nodes := make([]*corev1.Node, count)
	for i := range nodes {
		nodes[i] = g.node(fmt.Sprintf("n%02d", i))
	}
	g.Shuffle(count, func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

// node is a random node. Allocatable amounts are as crooked as kubelets report
// them.
func (g *generator) node(name string) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:               name,
			corev1.LabelTopologyZone:           one(g, "a", "b", "c"),
			"karpenter.sh/capacity-type":       one(g, "spot", "on-demand"),
			"node.kubernetes.io/instance-type": one(g, "small", "large"),
		}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:              resource.MustParse(one(g, "4", "7910m", "16", "31850m", "96", "191450m")),
				corev1.ResourceMemory:           resource.MustParse(one(g, "16Gi", "64000Mi", "130461580Ki", "1152Gi", "2000G")),
				corev1.ResourcePods:             resource.MustParse(one(g, "110", "110", "58", "250", "5")),
				corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Images:     g.nodeImages(),
		},
	}
	for _, gpu := range some(g, 60, nvidia, amd, mig) {
		n.Status.Allocatable[corev1.ResourceName(gpu)] = *resource.NewQuantity(int64(one(g, 1, 2, 4, 8, 8, 16)), resource.DecimalSI)
	}
	for _, key := range some(g, 15, "soft-1", "soft-2", "soft-3") {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: one(g, "", "x"), Effect: corev1.TaintEffectPreferNoSchedule})
	}
	if g.plain {
		return n
	}
	if g.chance(10) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "hard", Effect: one(g, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)})
	}
	if g.chance(5) {
		n.Status.Allocatable[corev1.ResourceName(nvidia)] = resource.MustParse("0")
	}
	if g.chance(3) {
		delete(n.Status.Allocatable, one(g, corev1.ResourceCPU, corev1.ResourceMemory))
	}
	if g.chance(5) {
		n.Spec.Unschedulable = true
	}
	if g.chance(3) {
		n.Status.Conditions[0].Status = one(g, corev1.ConditionFalse, corev1.ConditionUnknown)
	}
	if g.chance(3) {
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

func (g *generator) nodeImages() []corev1.ContainerImage {
	var out []corev1.ContainerImage
	for _, name := range some(g, 40, images...) {
		size := int64(1+g.IntN(6000)) << 20
		switch {
		case name == "tiny:latest":
			size = 700_000
		case g.sameSizes:
			size = int64(len(name)) * 77_777_777
		}
		out = append(out, corev1.ContainerImage{Names: []string{name}, SizeBytes: size})
	}
	return out
}

// image is what a pod's container names: with or without a tag.
func (g *generator) image() string {
	return one(g, append([]string{"train", "registry.example:5000/team/train", "quay.io/team/serve", "unknown:7", "tiny"}, images...)...)
}

// running returns pods that are on nodes already, some on more than it has.
func (g *generator) running(nodes []*corev1.Node, count int) []*corev1.Pod {
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		pods[i] = g.runningPod(one(g, nodes...).Name)
	}
	return pods
}

func (g *generator) runningPod(node string) *corev1.Pod {
	g.podLevel = 10
	p := g.pod()
	p.Spec.NodeName = node
	p.Status.Phase = one(g, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed)
	for i := range p.Spec.Containers {
		g.resources(&p.Spec.Containers[i], some(g, 30, nvidia, amd, mig), 2)
	}
	if g.chance(10) {
		now := metav1.NewTime(start)
		p.DeletionTimestamp = &now
	}
	if g.chance(10) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: &yes}}
	}
	if g.chance(15) {
		g.resize(p)
	}
	corev1defaults.SetObjectDefaults_Pod(p)
	return p
}

// resize makes the pod look as if it were being resized in place: what the
// kubelet has allocated differs from the spec.
func (g *generator) resize(p *corev1.Pod) {
	for _, c := range p.Spec.Containers {
		actual := g.requests(70)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name:               c.Name,
			AllocatedResources: g.requests(70),
			Resources:          &corev1.ResourceRequirements{Requests: actual},
		})
	}
	if p.Spec.Resources != nil && g.chance(50) {
		p.Status.AllocatedResources = g.podRequests()
		p.Status.Resources = &corev1.ResourceRequirements{Requests: g.podRequests()}
	}
	if g.chance(30) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible,
		})
	}
}

// incoming returns a pod that asks for GPUs, as a user sends it.
func (g *generator) incoming() *corev1.Pod {
	g.podLevel = 0
	p := g.pod()
	gpus := []string{one(g, nvidia, nvidia, amd, mig)}
	if g.chance(10) {
		gpus = []string{nvidia, amd}
	}
	g.resources(&p.Spec.Containers[0], gpus, 4)
	if len(p.Spec.InitContainers) > 0 && g.chance(20) {
		g.resources(&p.Spec.InitContainers[0], gpus, 4)
	}
	for _, key := range some(g, 25, "soft-1", "soft-2", "soft-3", "hard", "DeletionCandidateOfClusterAutoscaler") {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
			Key:      key,
			Operator: one(g, corev1.TolerationOpExists, corev1.TolerationOpEqual),
			Effect:   one(g, "", corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoSchedule),
		})
	}
	if g.chance(5) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	g.preferences(p)
	if g.chance(15) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: one(g, "a", "b")}
	}
	if g.chance(15) {
		nodesOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{g.term()}}
	}
	if g.chance(10) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "model", VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: g.image()},
		}})
	}
	return p
}

// preferences gives the pod up to three preferred terms of the user.
func (g *generator) preferences(p *corev1.Pod) {
	for range one(g, 0, 0, 1, 2, 3) {
		nodesOf(p).PreferredDuringSchedulingIgnoredDuringExecution = append(
			nodesOf(p).PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: int32(1 + g.IntN(100)), Preference: g.term()})
	}
}

// term is a user's term about zones, capacity types or instance types.
func (g *generator) term() corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{one(g,
		corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: append(some(g, 40, "b", "c", "d"), "a")},
		corev1.NodeSelectorRequirement{Key: "karpenter.sh/capacity-type", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"spot"}},
		corev1.NodeSelectorRequirement{Key: "node.kubernetes.io/instance-type", Operator: corev1.NodeSelectorOpExists},
		corev1.NodeSelectorRequirement{Key: "node.kubernetes.io/instance-type", Operator: corev1.NodeSelectorOpIn, Values: []string{"large"}},
	)}}
}

func nodesOf(p *corev1.Pod) *corev1.NodeAffinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return p.Spec.Affinity.NodeAffinity
}

// pod is a pod without GPUs: containers, init containers and sidecars with and
// without requests, sometimes overhead or resources of the whole pod.
func (g *generator) pod() *corev1.Pod {
	g.pods++
	name := fmt.Sprintf("p%03d", g.pods)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: team, UID: types.UID(name), CreationTimestamp: metav1.NewTime(start),
	}}
	for i := range one(g, 1, 1, 1, 2, 3) {
		p.Spec.Containers = append(p.Spec.Containers, g.container(fmt.Sprintf("c%d", i)))
	}
	for i := range one(g, 0, 0, 0, 1, 2) {
		c := g.container(fmt.Sprintf("i%d", i))
		if g.chance(40) {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if g.chance(10) {
		p.Spec.Overhead = g.requests(80)
	}
	if g.chance(g.podLevel) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: g.podRequests()}
	}
	return p
}

// podRequests are requests of a whole pod, at least what its containers add up to.
func (g *generator) podRequests() corev1.ResourceList {
	out := corev1.ResourceList{}
	if g.chance(70) {
		out[corev1.ResourceCPU] = resource.MustParse("20")
	}
	if g.chance(70) {
		out[corev1.ResourceMemory] = resource.MustParse("20Gi")
	}
	return out
}

func (g *generator) container(name string) corev1.Container {
	return corev1.Container{Name: name, Image: g.image(), Resources: corev1.ResourceRequirements{Requests: g.requests(60)}}
}

// requests are CPU, memory and storage, each with a chance in percent.
func (g *generator) requests(percent int) corev1.ResourceList {
	out := corev1.ResourceList{}
	if g.chance(percent) {
		out[corev1.ResourceCPU] = resource.MustParse(one(g, "0", "1m", "250m", "1", "1500m", "4"))
	}
	if g.chance(percent) {
		out[corev1.ResourceMemory] = resource.MustParse(one(g, "0", "1", "128Mi", "1000M", "1.5Gi", "4Gi", "1500m"))
	}
	if g.chance(10) {
		out[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	}
	return out
}

// resources gives the container GPUs, 1 to most of each, as limits, which is the
// usual way and leaves the requests to the API server's defaulting.
func (g *generator) resources(c *corev1.Container, gpus []string, most int) {
	for _, gpu := range gpus {
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		c.Resources.Limits[corev1.ResourceName(gpu)] = *resource.NewQuantity(int64(1+g.IntN(most)), resource.DecimalSI)
	}
}

// start is where the clock of the index stands.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// team is the namespace of all pods.
const team = "team"
