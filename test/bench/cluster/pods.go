package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Pod returns the j-th pod of the i-th node, running. The first four use a GPU, the
// others little CPU and memory.
func (r *Realistic) Pod(i, j int) *corev1.Pod {
	pod := r.PendingPod(fmt.Sprintf("trainer-7d9c5b6f4-%05d-%03d", i, j), i, j < gpuPodsPerNode)
	Bind(pod, i)
	Run(pod, i, created)
	return pod
}

// PendingPod returns a pod that was just created: one that uses a GPU, steered to
// the i-th node, or a small one.
func (r *Realistic) PendingPod(name string, i int, gpu bool) *corev1.Pod {
	pod := r.trainer.DeepCopy()
	pod.Name, pod.UID, pod.CreationTimestamp = name, types.UID("6e2f1f6a-1c3b-4a52-"+name), created
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable}
	if gpu {
		steer(pod, i)
	} else {
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
			for c := range containers {
				containers[c].Resources = corev1.ResourceRequirements{Requests: small, Limits: small}
			}
		}
	}
	return pod
}

// chain are weights as ours.
var chain = []int32{100, 75, 56, 42, 31, 23, 17, 12, 9, 6, 4, 3, 2, 1}

// steer writes what gpu-binpacker does for a pod whose first node is the i-th.
func steer(pod *corev1.Pod, i int) {
	var preferred []corev1.PreferredSchedulingTerm
	var ranking []string
	for n, weight := range chain {
		name := NodeName(i + n)
		preferred = append(preferred, corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		}})
		ranking = append(ranking, fmt.Sprintf(`{"name":%q,"score":50,"freeAfter":3,"weight":%d}`, name, weight))
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{steering.NeutralConstraint()}
	pod.Annotations[config.AnnotationSteering] = config.SteeringRanked
	pod.Annotations[config.AnnotationTarget] = NodeName(i)
	pod.Annotations[config.AnnotationAdmission] = string(pod.UID)
	pod.Annotations[config.AnnotationRanking] = `{"strategy":"BestFit","nodes":[` + strings.Join(ranking, ",") + "]}"
}

// Bind writes what the scheduler does.
func Bind(pod *corev1.Pod, i int) {
	pod.Spec.NodeName = NodeName(i)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: created}}
}

// Run writes what the kubelet does when the containers run.
func Run(pod *corev1.Pod, i int, now metav1.Time) {
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	pod.Status.HostIP, pod.Status.HostIPs = hostIP(i), []corev1.HostIP{{IP: hostIP(i)}}
	ip := fmt.Sprintf("10.%d.%d.7", i/256, i%256)
	pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{containerStatus(&pod.Spec.InitContainers[0], corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now},
	})}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{containerStatus(&pod.Spec.Containers[0], corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: now},
	})}
}

func containerStatus(c *corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
	started := state.Running != nil
	return corev1.ContainerStatus{
		Name: c.Name, State: state, Ready: true, Started: &started, Image: c.Image, ImageID: fmt.Sprintf("%s@sha256:%064x", c.Image, 7),
		ContainerID: fmt.Sprintf("containerd://%064x", 7), AllocatedResources: c.Resources.Requests, Resources: &c.Resources,
	}
}
