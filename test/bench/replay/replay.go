package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/report"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/system"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

const (
	// cleanTimeout limits the removal of what a run has left.
	cleanTimeout = 3 * time.Minute
	// cleanInterval is the pause between two looks.
	cleanInterval = 50 * time.Millisecond
	// drawnNodes is the most nodes that a result lists one by one.
	drawnNodes = 320
)

// run is one replay.
type run struct {
	bed       *system.Bed
	w         *workload.Workload
	namespace string
	observer  *observer
	started   time.Time
	average   average
	lag       time.Duration
}

// Run replays a workload on the system that the bed uses and fills in what r says
// about it. The cluster has to be empty, and is again afterwards.
func Run(ctx context.Context, bed *system.Bed, w *workload.Workload, namespace string, r *report.Result) (err error) {
	play := &run{bed: bed, w: w, namespace: namespace}
	// After Ctrl-C the control plane ends anyway.
	defer func() {
		if ctx.Err() == nil {
			err = errors.Join(err, play.clean(ctx))
		}
	}()
	before, err := bed.Counts(ctx)
	if err != nil {
		return err
	}
	if err := play.prepare(ctx); err != nil {
		return fmt.Errorf("preparing the run: %w", err)
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	if play.observer, err = observe(watching, bed.Clients(), namespace, len(w.Nodes)); err != nil {
		return err
	}
	creator, err := play.newCreator(ctx)
	if err != nil {
		return err
	}
	play.started = time.Now()
	if err := play.play(ctx, creator); err != nil {
		return fmt.Errorf("replaying: %w", err)
	}
	after, err := bed.Counts(ctx)
	if err != nil {
		return err
	}
	counted := after.Since(before)
	if counted.Served != nil {
		r.ServedByReplica = counted.Served
	}
	r.Denied, r.FailedOpen = counted.Denied, counted.FailedOpen
	return play.measure(ctx, r)
}

// prepare makes namespace and nodes, and waits until everybody knows them.
func (r *run) prepare(ctx context.Context) error {
	if err := r.bed.CreateNamespace(ctx, r.namespace, r.bed.NamespaceLabels()); err != nil {
		return err
	}
	if r.w.NodesLast {
		return r.bed.WaitSeen(ctx, 0)
	}
	if err := r.bed.CreateNodes(ctx, nodesOf(r.w)...); err != nil {
		return err
	}
	return r.bed.WaitSeen(ctx, len(r.w.Nodes))
}

// measure fills in the result.
func (r *run) measure(ctx context.Context, result *report.Result) error {
	used, err := r.readUse(ctx)
	if err != nil {
		return err
	}
	seen, _ := r.observer.look()
	result.Pods, result.Bound = seen.created, seen.bound
	result.Landed, result.Late, result.Unsteered = seen.landed, seen.late, seen.unsteered
	result.Unplaced8GPU = seen.unbound8
	result.LagSeconds = r.lag.Seconds()
	result.Waits = r.observer.waits.result()
	if seen.bound > 0 {
		result.BindAllSeconds = seen.lastBound.Sub(r.started).Seconds()
	}
	if r.w.HasChurn() {
		result.Unplaced8GPU = seen.refused8
		result.OccupiedNodes, result.GPUsOnOccupiedNodes, result.FreeOnEmptyNodes = r.average.mean()
	} else {
		u := usageOf(r.w.Nodes, used)
		result.OccupiedNodes, result.GPUsOnOccupiedNodes = float64(u.occupied), float64(u.gpus)
		result.FreeOnEmptyNodes = u.freeOnEmpty
	}
	if len(used) <= drawnNodes && r.w.Seed == 1 {
		for i, n := range r.w.Nodes {
			result.NodeUse = append(result.NodeUse, [2]int64{n.GPUs, used[i]})
		}
	}
	return nil
}

// readUse reads the bindings from the API server and returns the GPUs in use by
// node.
func (r *run) readUse(ctx context.Context) ([]int64, error) {
	pods, err := r.bed.Clients().CoreV1().Pods(r.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading bindings: %w", err)
	}
	used := make([]int64, len(r.w.Nodes))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if err := r.bed.Dump(pod); err != nil {
			return nil, err
		}
		if node, ok := r.observer.nodes[pod.Spec.NodeName]; ok {
			quantity := pod.Spec.Containers[0].Resources.Requests[gpu]
			used[node] += quantity.Value()
		}
	}
	return used, nil
}

// clean removes owners, pods and nodes.
func (r *run) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	if err := r.removeOwners(ctx); err != nil {
		return fmt.Errorf("cleaning up: %w", err)
	}
	pods := r.bed.Clients().CoreV1().Pods(r.namespace)
	err := wait.PollUntilContextCancel(ctx, cleanInterval, true, func(ctx context.Context) (bool, error) {
		if err := pods.DeleteCollection(ctx, *metav1.NewDeleteOptions(0), metav1.ListOptions{}); err != nil {
			return false, err
		}
		left, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil && len(left.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("deleting pods: %w", err)
	}
	err = r.bed.Clients().CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("deleting nodes: %w", err)
	}
	return nil
}

// removeOwners deletes ReplicaSets and Jobs and leaves their pods to clean.
func (r *run) removeOwners(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	sets := r.bed.Clients().AppsV1().ReplicaSets(r.namespace)
	if err := sets.DeleteCollection(ctx, options, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := r.bed.Clients().BatchV1().Jobs(r.namespace).DeleteCollection(ctx, options, metav1.ListOptions{}); err != nil {
		return err
	}
	held, err := sets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range held.Items {
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		_, err := sets.Patch(ctx, held.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
