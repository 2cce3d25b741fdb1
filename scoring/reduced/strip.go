package reduced

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// StripNode returns a node with nothing but what is read of it.
func StripNode(n *corev1.Node) corev1.Node {
	n = n.DeepCopy()
	out := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, Labels: n.Labels, CreationTimestamp: n.CreationTimestamp, DeletionTimestamp: n.DeletionTimestamp,
		},
		Spec:   corev1.NodeSpec{Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable},
		Status: corev1.NodeStatus{Allocatable: n.Status.Allocatable, Images: n.Status.Images},
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return out
}

// StripPod returns a pod with nothing but what is read of it: by decisions and the index, by
// the simulation, and of all that by a webhook request. There are no commands, environment,
// messages, and of volumes images only.
func StripPod(p *corev1.Pod) corev1.Pod {
	p = p.DeepCopy()
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, UID: p.UID, Labels: p.Labels, Annotations: ourAnnotations(p.Annotations),
			CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp, OwnerReferences: p.OwnerReferences,
		},
		Spec: corev1.PodSpec{
			InitContainers:            stripContainers(p.Spec.InitContainers),
			Containers:                stripContainers(p.Spec.Containers),
			Overhead:                  p.Spec.Overhead,
			Resources:                 p.Spec.Resources,
			NodeName:                  p.Spec.NodeName,
			NodeSelector:              p.Spec.NodeSelector,
			Affinity:                  p.Spec.Affinity,
			Tolerations:               p.Spec.Tolerations,
			TopologySpreadConstraints: p.Spec.TopologySpreadConstraints,
			Volumes:                   imageVolumes(p.Spec.Volumes),
			SchedulerName:             p.Spec.SchedulerName,
			SchedulingGates:           p.Spec.SchedulingGates,
			Priority:                  p.Spec.Priority,
			PriorityClassName:         p.Spec.PriorityClassName,
		},
		Status: corev1.PodStatus{
			Phase:                 p.Status.Phase,
			Conditions:            stripConditions(p.Status.Conditions),
			Reason:                p.Status.Reason,
			StartTime:             p.Status.StartTime,
			NominatedNodeName:     p.Status.NominatedNodeName,
			ContainerStatuses:     stripStatuses(p.Status.ContainerStatuses),
			InitContainerStatuses: stripStatuses(p.Status.InitContainerStatuses),
			Resources:             p.Status.Resources,
			AllocatedResources:    p.Status.AllocatedResources,
		},
	}
}

// imageVolumes are the volumes that are images: the scheduler prefers nodes that have them.
func imageVolumes(volumes []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for i := range volumes {
		if image := volumes[i].Image; image != nil {
			out = append(out, corev1.Volume{Name: volumes[i].Name, VolumeSource: corev1.VolumeSource{Image: image}})
		}
	}
	return out
}

// ourAnnotations are those that this product writes.
func ourAnnotations(all map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range all {
		if strings.HasPrefix(key, config.Domain) {
			kept[key] = value
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

func stripContainers(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for i := range containers {
		c := &containers[i]
		out = append(out, corev1.Container{
			Name: c.Name, Image: c.Image, Resources: c.Resources, ResizePolicy: c.ResizePolicy, RestartPolicy: c.RestartPolicy,
		})
	}
	return out
}

// stripConditions keeps those that are read: whether the scheduler found no node, whether
// a resize is still to come, and whether a replica of the webhook serves.
func stripConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, c := range conditions {
		switch c.Type {
		case corev1.PodScheduled, corev1.PodResizePending, corev1.PodReady:
			out = append(out, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return out
}

func stripStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range statuses {
		s := &statuses[i]
		out = append(out, corev1.ContainerStatus{
			Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources,
			State: stripState(s.State), LastTerminationState: stripState(s.LastTerminationState), RestartCount: s.RestartCount,
		})
	}
	return out
}

// stripState keeps whether and when a container ran, and why not. Messages are the program's.
func stripState(s corev1.ContainerState) corev1.ContainerState {
	out := corev1.ContainerState{Running: s.Running}
	if w := s.Waiting; w != nil {
		out.Waiting = &corev1.ContainerStateWaiting{Reason: w.Reason}
	}
	if t := s.Terminated; t != nil {
		out.Terminated = &corev1.ContainerStateTerminated{ExitCode: t.ExitCode, Reason: t.Reason, StartedAt: t.StartedAt, FinishedAt: t.FinishedAt}
	}
	return out
}
