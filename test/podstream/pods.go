package podstream

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GPUPod returns a pod that asks for one GPU, 8 CPUs and 64 GiB.
func GPUPod(namespace, name string) *corev1.Pod {
	limits := corev1.ResourceList{
		"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "nvidia.com/gpu": resource.MustParse("1"),
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "train", Image: "train:1", Resources: corev1.ResourceRequirements{Limits: limits},
		}}},
	}
}
