package faults

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// webhookGate changes what becomes of the API server's connections to the webhook.
func webhookGate(state gateState) func(context.Context, *bed) error {
	return func(_ context.Context, b *bed) error { return b.toWebhook.set(state) }
}

// watchCut cuts the replicas off from the API server, so that they decide by what
// they have seen before, for some seconds. Then they must see what they missed: a
// node.
func watchCut(name string, short bool, state gateState, seconds int) fault {
	missed := controlplane.Node("missed", map[string]string{"cpu": "1"})
	return fault{
		name:  name,
		short: short,
		inject: func(ctx context.Context, b *bed) error {
			if err := b.toAPIServer.set(state); err != nil {
				return err
			}
			return b.CreateNodes(ctx, missed)
		},
		shows: func(_ context.Context, b *bed, since time.Time) (bool, error) {
			// The length of the cut is the fault. That it hits shows in the
			// connections that the replicas try to make meanwhile.
			return time.Since(since) >= time.Duration(seconds)*time.Second && b.toAPIServer.troubledConnections() > 0, nil
		},
		end:       func(_ context.Context, b *bed) error { return b.toAPIServer.set(passing) },
		recovered: nodesSeen,
		after: func(ctx context.Context, b *bed) error {
			return client.IgnoreNotFound(b.Client().Delete(ctx, missed))
		},
	}
}

// nodesSeen is true when every replica knows as many nodes as the API server.
func nodesSeen(ctx context.Context, b *bed, _ time.Time) (bool, error) {
	all := &corev1.NodeList{}
	if err := b.Client().List(ctx, all); err != nil {
		return false, err
	}
	for _, replica := range b.installed.Replicas() {
		metrics, err := replica.Metrics(ctx)
		if err != nil {
			return false, err
		}
		if seen := int(metrics.Sum("gpu_binpacker_index_nodes", nil)); seen != len(all.Items) {
			return false, fmt.Errorf("%s knows %d of %d nodes", replica.Name(), seen, len(all.Items))
		}
	}
	return true, nil
}
