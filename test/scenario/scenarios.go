package scenario

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Scenario is a workload on a set of nodes of its own, and what good packing
// comes to.
type Scenario struct {
	// Name is the name in reports, Title says what happens, in one line.
	Name, Title string
	// Nodes is how many nodes there are, GPUs how many each has.
	Nodes, GPUs int
	// Ideal is the fewest nodes that can hold the workload.
	Ideal int
	// SchedulerName is the spec.schedulerName of its pods. Default: they name none.
	SchedulerName string
	// play creates the workload, step by step.
	play func(context.Context, *stage) error
	// Check returns an error when the placement is not the packed one.
	Check func(Placement) error
}

// All returns the scenarios in the order of the demo.
func All() []Scenario {
	return []Scenario{Score(), FourPods(), Burst(), OneThreeOneThree()}
}

// Score is the origin's example: of two nodes with 4 GPUs, 3 are allocated on
// one and 1 on the other, score 75 and 25; the next pod goes to the first.
func Score() Scenario {
	return Scenario{
		Name:  "score",
		Title: "a 1-GPU pod; node 0 has 3 of 4 GPUs allocated (score 75), node 1 has 1 (score 25)",
		Nodes: 2, GPUs: 4, Ideal: 2,
		play: func(ctx context.Context, s *stage) error {
			if err := s.place(ctx, 0, 3); err != nil {
				return err
			}
			if err := s.place(ctx, 1, 1); err != nil {
				return err
			}
			return s.one(ctx, 1)
		},
		Check: func(p Placement) error {
			if p.Pending > 0 || p.Nodes[0].Used() != 4 || p.Nodes[1].Used() != 1 {
				return fmt.Errorf("the pod did not go to the node with score 75: %+v", p)
			}
			return nil
		},
	}
}

// FourPods are four 1-GPU pods, one after another, on four nodes with 2 GPUs.
func FourPods() Scenario {
	return Scenario{
		Name:  "four-pods",
		Title: "four 1-GPU pods, one after another, on four nodes with 2 GPUs",
		Nodes: 4, GPUs: 2, Ideal: 2,
		play: func(ctx context.Context, s *stage) error { return s.sequence(ctx, 1, 1, 1, 1) },
		Check: func(p Placement) error {
			if p.Pending > 0 || p.NodesUsed() != 2 || p.NodesFull() != 2 {
				return fmt.Errorf("not two full and two empty nodes: %+v", p)
			}
			return nil
		},
	}
}

// Burst is a ReplicaSet of 64 one-GPU pods, created at once.
func Burst() Scenario { return BurstOn(16, 64) }

// BurstOn is a ReplicaSet of one-GPU pods, created at once, on nodes with 8 GPUs.
func BurstOn(nodes, pods int) Scenario {
	return Scenario{
		Name:  "burst",
		Title: fmt.Sprintf("a ReplicaSet of %d one-GPU pods, created at once, on %d nodes with 8 GPUs", pods, nodes),
		Nodes: nodes, GPUs: 8, Ideal: (pods + 7) / 8,
		play:  func(ctx context.Context, s *stage) error { return s.replicaSet(ctx, int32(pods), 1) },
		Check: usesExactly((pods + 7) / 8),
	}
}

// OneByOne are 64 one-GPU pods on 16 nodes with 8 GPUs, each created when the last
// one is placed.
func OneByOne() Scenario {
	return Scenario{
		Name:  "one-by-one",
		Title: "64 one-GPU pods, one after another, on 16 nodes with 8 GPUs",
		Nodes: 16, GPUs: 8, Ideal: 8,
		play:  func(ctx context.Context, s *stage) error { return s.sequence(ctx, slices.Repeat([]int{1}, 64)...) },
		Check: usesExactly(8),
	}
}

// usesExactly checks that all pods are placed, on so many nodes.
func usesExactly(nodes int) func(Placement) error {
	return func(p Placement) error {
		if p.Pending > 0 || p.NodesUsed() != nodes {
			return fmt.Errorf("%d nodes used and %d pods pending, not %d and 0", p.NodesUsed(), p.Pending, nodes)
		}
		return nil
	}
}

// OneThreeOneThree is Kubernetes issue 68547: when the small pods are spread, the
// last large one finds no node.
func OneThreeOneThree() Scenario {
	return Scenario{
		Name:  "1-3-1-3",
		Title: "pods with 1, 3, 1 and 3 GPUs on two nodes with 4 GPUs",
		Nodes: 2, GPUs: 4, Ideal: 2,
		play: func(ctx context.Context, s *stage) error { return s.sequence(ctx, 1, 3, 1, 3) },
		Check: func(p Placement) error {
			if p.Pending > 0 || p.NodesFull() != 2 {
				return fmt.Errorf("%d nodes full and %d pods pending, not 2 and 0", p.NodesFull(), p.Pending)
			}
			return nil
		},
	}
}

// resources of a pod: per GPU 8 CPUs and 64 GiB, on nodes with 12 and 144 GiB per
// GPU, the ratio of common 8-GPU machines.
func podResources(gpus int) corev1.ResourceList {
	return quantities(map[corev1.ResourceName]int64{
		corev1.ResourceCPU:    int64(gpus) * 8,
		corev1.ResourceMemory: int64(gpus) * 64 << 30,
		GPU:                   int64(gpus),
	})
}
