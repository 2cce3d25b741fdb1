package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
)

// Running returns pods that are on nodes already, some on more than it has.
func (g *Generator) Running(nodes []*corev1.Node, count int) []*corev1.Pod {
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		pods[i] = g.RunningPod(One(g, nodes...).Name)
	}
	return pods
}

// RunningPod returns a pod that is bound to the node and runs there, as the API server
// has it.
func (g *Generator) RunningPod(node string) *corev1.Pod {
	g.podLevel = 10
	p := g.pod()
	p.Spec.NodeName = node
	p.Status.Phase = One(g, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed)
	for i := range p.Spec.Containers {
		g.GiveGPUs(&p.Spec.Containers[i], Some(g, 30, NVIDIA, AMD, MIG), 2)
	}
	if g.Chance(10) {
		now := metav1.NewTime(Start)
		p.DeletionTimestamp = &now
	}
	if g.Chance(10) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: &yes}}
	}
	if g.Chance(15) {
		g.resize(p)
	}
	corev1defaults.SetObjectDefaults_Pod(p)
	return p
}

// resize makes the pod look as if it were being resized in place: what the
// kubelet has allocated differs from the spec.
func (g *Generator) resize(p *corev1.Pod) {
	for _, c := range p.Spec.Containers {
		actual := g.requests(70)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name:               c.Name,
			AllocatedResources: g.requests(70),
			Resources:          &corev1.ResourceRequirements{Requests: actual},
		})
	}
	if p.Spec.Resources != nil && g.Chance(50) {
		p.Status.AllocatedResources = g.PodRequests()
		p.Status.Resources = &corev1.ResourceRequirements{Requests: g.PodRequests()}
	}
	if g.Chance(30) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible,
		})
	}
}

// Incoming returns a pod that asks for GPUs, as a user sends it.
func (g *Generator) Incoming() *corev1.Pod {
	g.podLevel = 0
	p := g.pod()
	gpus := []string{One(g, NVIDIA, NVIDIA, AMD, MIG)}
	if g.Chance(10) {
		gpus = []string{NVIDIA, AMD}
	}
	g.GiveGPUs(&p.Spec.Containers[0], gpus, 4)
	if len(p.Spec.InitContainers) > 0 && g.Chance(20) {
		g.GiveGPUs(&p.Spec.InitContainers[0], gpus, 4)
	}
	for _, key := range Some(g, 25, "soft-1", "soft-2", "soft-3", "hard", "DeletionCandidateOfClusterAutoscaler") {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
			Key:      key,
			Operator: One(g, corev1.TolerationOpExists, corev1.TolerationOpEqual),
			Effect:   One(g, "", corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoSchedule),
		})
	}
	if g.Chance(5) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	g.preferences(p)
	if g.Chance(15) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: One(g, "a", "b")}
	}
	if g.Chance(15) {
		NodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{g.term()}}
	}
	if g.Chance(10) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "model", VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: g.image()},
		}})
	}
	return p
}

// preferences gives the pod up to three preferred terms of the user.
func (g *Generator) preferences(p *corev1.Pod) {
	for range One(g, 0, 0, 1, 2, 3) {
		NodeAffinityOf(p).PreferredDuringSchedulingIgnoredDuringExecution = append(
			NodeAffinityOf(p).PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: int32(1 + g.IntN(100)), Preference: g.term()})
	}
}

// term is a user's term about zones, capacity types or instance types.
func (g *Generator) term() corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{One(g,
		corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: append(Some(g, 40, "b", "c", "d"), "a")},
		corev1.NodeSelectorRequirement{Key: "karpenter.sh/capacity-type", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"spot"}},
		corev1.NodeSelectorRequirement{Key: "node.kubernetes.io/instance-type", Operator: corev1.NodeSelectorOpExists},
		corev1.NodeSelectorRequirement{Key: "node.kubernetes.io/instance-type", Operator: corev1.NodeSelectorOpIn, Values: []string{"large"}},
	)}}
}

// NodeAffinityOf returns the node affinity of a pod, which it adds if there is none.
func NodeAffinityOf(p *corev1.Pod) *corev1.NodeAffinity {
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
func (g *Generator) pod() *corev1.Pod {
	g.Count++
	name := fmt.Sprintf("p%03d", g.Count)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: Team, UID: types.UID(name), CreationTimestamp: metav1.NewTime(Start),
	}}
	for i := range One(g, 1, 1, 1, 2, 3) {
		p.Spec.Containers = append(p.Spec.Containers, g.container(fmt.Sprintf("c%d", i)))
	}
	for i := range One(g, 0, 0, 0, 1, 2) {
		c := g.container(fmt.Sprintf("i%d", i))
		if g.Chance(40) {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if g.Chance(10) {
		p.Spec.Overhead = g.requests(80)
	}
	if g.Chance(g.podLevel) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: g.PodRequests()}
	}
	return p
}

// PodRequests are requests of a whole pod, at least what its containers add up to.
func (g *Generator) PodRequests() corev1.ResourceList {
	out := corev1.ResourceList{}
	if g.Chance(70) {
		out[corev1.ResourceCPU] = resource.MustParse("20")
	}
	if g.Chance(70) {
		out[corev1.ResourceMemory] = resource.MustParse("20Gi")
	}
	return out
}

func (g *Generator) container(name string) corev1.Container {
	return corev1.Container{Name: name, Image: g.image(), Resources: corev1.ResourceRequirements{Requests: g.requests(60)}}
}

// requests are CPU, memory and storage, each with a chance in percent.
func (g *Generator) requests(percent int) corev1.ResourceList {
	out := corev1.ResourceList{}
	if g.Chance(percent) {
		out[corev1.ResourceCPU] = resource.MustParse(One(g, "0", "1m", "250m", "1", "1500m", "4"))
	}
	if g.Chance(percent) {
		out[corev1.ResourceMemory] = resource.MustParse(One(g, "0", "1", "128Mi", "1000M", "1.5Gi", "4Gi", "1500m"))
	}
	if g.Chance(10) {
		out[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	}
	return out
}

// GiveGPUs gives the container GPUs, 1 to most of each, as limits, which is the
// usual way and leaves the requests to the API server's defaulting.
func (g *Generator) GiveGPUs(c *corev1.Container, gpus []string, most int) {
	for _, gpu := range gpus {
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		c.Resources.Limits[corev1.ResourceName(gpu)] = *resource.NewQuantity(int64(1+g.IntN(most)), resource.DecimalSI)
	}
}
