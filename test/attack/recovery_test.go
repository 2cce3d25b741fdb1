package attack

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/podstream"
)

const (
	// recoveryTime is how long after an attack, of which nothing is left in the API
	// server, everything is normal at the latest.
	recoveryTime = 10 * time.Second
	// podsPerNode is how many pods with a GPU a node takes.
	podsPerNode = 8
	// bindTimeout limits the wait for the scheduler, which binds within a tenth of a
	// second when it is idle.
	bindTimeout = 5 * time.Second
)

// waitNormal waits until everything is normal, until recoveryTime after a moment, and
// returns what is not.
func (b *bed) waitNormal(ctx context.Context, ended time.Time) error {
	deadline := ended.Add(recoveryTime)
	for {
		err := b.isNormal(ctx)
		if err == nil || time.Now().After(deadline) || !podstream.Pause(ctx, waitInterval) {
			return err
		}
	}
}

// isNormal returns what is not normal: nothing is reserved, and pods are steered and
// packed.
func (b *bed) isNormal(ctx context.Context) error {
	if err := b.quiet(ctx); err != nil {
		return err
	}
	err := b.packs(ctx)
	return errors.Join(err, b.clear(ctx, victimsNamespace))
}

// quiet returns an error unless every replica knows what the API server has and holds
// nothing for pods that it has not seen.
func (b *bed) quiet(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := b.Client().List(ctx, pods); err != nil {
		return err
	}
	bound := 0
	for i := range pods.Items {
		phase := pods.Items[i].Status.Phase
		if pods.Items[i].Spec.NodeName != "" && phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			bound++
		}
	}
	return b.each(func(replica *installation.Replica) error {
		metrics, err := replica.Metrics(ctx)
		if err != nil {
			return err
		}
		for name, want := range map[string]int{
			"gpu_binpacker_index_nodes": b.nodes, "gpu_binpacker_index_pods": bound, "gpu_binpacker_index_reservations": 0,
		} {
			if got := int(metrics.Sum(name, nil)); got != want {
				return fmt.Errorf("%s: %s is %d, want %d", replica.Name(), name, got, want)
			}
		}
		return nil
	})
}

// packs returns an error unless a node's worth of pods with one GPU, one after another,
// are steered to one node and land there.
func (b *bed) packs(ctx context.Context) error {
	first := ""
	for n := range podsPerNode {
		pod := podstream.GPUPod(victimsNamespace, "")
		pod.GenerateName = "normal-"
		pod.Spec.NodeSelector = map[string]string{normalLabel: "true"}
		if err := b.Client().Create(ctx, pod); err != nil {
			return err
		}
		if steering := pod.Annotations[config.AnnotationSteering]; steering != config.SteeringRanked {
			return fmt.Errorf("a new pod has the steering %q", steering)
		}
		target := pod.Annotations[config.AnnotationTarget]
		node, err := b.waitBound(ctx, pod)
		if err != nil {
			return err
		}
		if first == "" {
			first = node
		}
		if node != target || node != first {
			return fmt.Errorf("pod %d of one node's worth was steered to %s and is on %s, the first is on %s", n+1, target, node, first)
		}
	}
	return nil
}

// waitBound waits until the scheduler has bound the pod and returns the node.
func (b *bed) waitBound(ctx context.Context, pod *corev1.Pod) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	err := wait(ctx, pod.Name+" to be bound", func(ctx context.Context) (bool, error) {
		err := b.Client().Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Spec.NodeName != "", err
	})
	return pod.Spec.NodeName, err
}
