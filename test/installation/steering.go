package installation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// probeResource is the GPU that the probe of WaitSteering asks for.
const probeResource = "nvidia.com/gpu"

// WaitSteering returns when the API server calls the webhook and the webhook
// steers: a pod that asks for a GPU, created on trial in a namespace that has
// opted in, comes back with our annotation. The webhook needs a node with GPUs
// for that.
func (i *Installation) WaitSteering(ctx context.Context) error {
	namespace := "gpu-binpacker-probe-" + rand.String(5)
	if err := i.cp.CreateNamespace(ctx, namespace, map[string]string{config.LabelEnabled: "true"}); err != nil {
		return fmt.Errorf("waiting for steering: %w", err)
	}
	last := errors.New("the probe has no annotation " + config.AnnotationSteering)
	err := wait.PollUntilContextTimeout(ctx, waitInterval, waitTimeout, true, func(ctx context.Context) (bool, error) {
		probe := gpuPod(namespace)
		if err := i.cp.Client().Create(ctx, probe, client.DryRunAll); err != nil {
			last = err
			return false, nil
		}
		return probe.Annotations[config.AnnotationSteering] != "", nil
	})
	remove := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err != nil {
		return errors.Join(fmt.Errorf("waiting for steering: %w", err), last)
	}
	if err := i.cp.Client().Delete(ctx, remove); err != nil {
		return fmt.Errorf("waiting for steering: %w", err)
	}
	return nil
}

// gpuPod returns a pod that asks for one GPU.
func gpuPod(namespace string) *corev1.Pod {
	limits := corev1.ResourceList{probeResource: resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "probe", Image: "example.invalid/probe", Resources: corev1.ResourceRequirements{Limits: limits},
		}}},
	}
}
