package scenario

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
)

const (
	// waitTimeout limits each wait for the cluster to get somewhere.
	waitTimeout = time.Minute
	// waitInterval is the pause between two looks.
	waitInterval = 50 * time.Millisecond
)

// Cluster is a control plane with the product installed. Scenarios need its
// controller manager and kwok, and no nodes but their own.
type Cluster struct {
	*controlplane.ControlPlane
	Installed *installation.Installation
}

// WaitIndex waits until every replica of the webhook has seen what the API server
// has: its nodes, and its pods that are bound and not over. It also waits until none
// reserves room for a pod that never came, since its call had timed out.
func (c *Cluster) WaitIndex(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := c.Client().List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	var pods corev1.PodList
	if err := c.Client().List(ctx, &pods); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	bound := 0
	for i := range pods.Items {
		phase := pods.Items[i].Status.Phase
		if pods.Items[i].Spec.NodeName != "" && phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			bound++
		}
	}
	for _, replica := range c.Installed.Replicas() {
		var seenNodes, seenPods, reserved float64
		err := poll(ctx, func(ctx context.Context) (bool, error) {
			metrics, err := replica.Metrics(ctx)
			if err != nil {
				return false, err
			}
			seenNodes = metrics.Sum("gpu_binpacker_index_nodes", nil)
			seenPods = metrics.Sum("gpu_binpacker_index_pods", nil)
			reserved = metrics.Sum("gpu_binpacker_index_reservations", nil)
			return int(seenNodes) == len(nodes.Items) && int(seenPods) == bound && reserved == 0, nil
		})
		if err != nil {
			return fmt.Errorf("%s has seen %v nodes and %v pods of %d and %d, and reserves for %v more: %w",
				replica.Name(), seenNodes, seenPods, len(nodes.Items), bound, reserved, err)
		}
	}
	return nil
}

// poll calls condition until it is true.
func poll(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, waitInterval, waitTimeout, true, condition)
}
