package replay

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

const (
	// gpu is the resource name of all GPUs here.
	gpu corev1.ResourceName = "nvidia.com/gpu"
	// groupLabel names the group of a pod.
	groupLabel = "group"
	// holder keeps kube-controller-manager away from owners whose pods we make:
	// as finalizer of a ReplicaSet, as spec.managedBy of a Job.
	holder = "bench.gpu-binpacker.io/hold"
)

// nodeName is the name of the i-th node of a workload.
func nodeName(i int) string { return fmt.Sprintf("gpu-%04d", i) }

// nodesOf returns the nodes of a workload.
func nodesOf(w *workload.Workload) []*corev1.Node {
	nodes := make([]*corev1.Node, len(w.Nodes))
	for i, n := range w.Nodes {
		allocatable := map[string]string{
			"cpu":       strconv.FormatInt(n.MilliCPU, 10) + "m",
			"memory":    strconv.FormatInt(n.MemoryMiB, 10) + "Mi",
			string(gpu): strconv.FormatInt(n.GPUs, 10),
		}
		nodes[i] = controlplane.Node(nodeName(i), allocatable, controlplane.WithoutKwok())
	}
	return nodes
}

// podSpec is the spec of a pod of a group. Without a kubelet nobody would end the
// grace period of a deleted pod, so there is none.
func (r *run) podSpec(group int) corev1.PodSpec {
	a := r.w.Groups[group]
	amounts := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(a.MilliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(a.MemoryMiB<<20, resource.BinarySI),
		gpu:                   *resource.NewQuantity(a.GPUs, resource.DecimalSI),
	}
	return corev1.PodSpec{
		SchedulerName:                 r.bed.SchedulerName(),
		TerminationGracePeriodSeconds: new(int64),
		Containers: []corev1.Container{{
			Name: "train", Image: "train:1",
			Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts},
		}},
	}
}

func groupName(group int) string { return "group-" + strconv.Itoa(group) }

func groupLabels(group int) map[string]string { return map[string]string{groupLabel: groupName(group)} }

// pod returns a pod that we create ourselves.
func (r *run) pod(i int, owner *metav1.OwnerReference) *corev1.Pod {
	group := r.w.Pods[i]
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName(i), Namespace: r.namespace, Labels: groupLabels(group)},
		Spec:       r.podSpec(group),
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return pod
}

func podName(i int) string { return "pod-" + strconv.Itoa(i) }

// replicaSet returns the ReplicaSet of a group.
func (r *run) replicaSet(group, replicas int) *appsv1.ReplicaSet {
	count := int32(replicas)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: groupName(group), Namespace: r.namespace},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: groupLabels(group)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: groupLabels(group)}, Spec: r.podSpec(group),
			},
		},
	}
}

// holdReplicaSet creates a ReplicaSet whose pods we make and end ourselves, each
// at its time, which its controller would not let us: it is being deleted, and
// controllers leave such an owner alone. To the scheduler it is one like others.
func (r *run) holdReplicaSet(ctx context.Context, group int) (*metav1.OwnerReference, error) {
	sets := r.bed.Clients().AppsV1().ReplicaSets(r.namespace)
	set := r.replicaSet(group, 0)
	set.Finalizers = []string{holder}
	created, err := sets.Create(ctx, set, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if err := sets.Delete(ctx, set.Name, metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	return metav1.NewControllerRef(created, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")), nil
}

// holdJob creates a Job whose pods we make ourselves.
func (r *run) holdJob(ctx context.Context, group int) (*metav1.OwnerReference, error) {
	managedBy := holder
	spec := r.podSpec(group)
	spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: groupName(group), Namespace: r.namespace},
		Spec:       batchv1.JobSpec{ManagedBy: &managedBy, Template: corev1.PodTemplateSpec{Spec: spec}},
	}
	created, err := r.bed.Clients().BatchV1().Jobs(r.namespace).Create(ctx, job, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return metav1.NewControllerRef(created, batchv1.SchemeGroupVersion.WithKind("Job")), nil
}
