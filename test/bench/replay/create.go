package replay

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

// parallelism is how many requests are in flight in a burst.
const parallelism = 32

// creator makes pods of a workload.
type creator interface {
	// create asks for pods; it may return before they exist.
	create(ctx context.Context, pods []int) error
}

// newCreator returns what makes the pods: kube-controller-manager where pods of a
// ReplicaSet come one by one or in a burst, we ourselves otherwise.
func (r *run) newCreator(ctx context.Context) (creator, error) {
	if r.w.Owner == workload.ReplicaSet && r.w.Arrival != workload.Rate {
		return &scaler{run: r, replicas: map[int]int{}}, nil
	}
	hold := map[workload.Owner]func(context.Context, int) (*metav1.OwnerReference, error){
		workload.ReplicaSet: r.holdReplicaSet,
		workload.Job:        r.holdJob,
	}[r.w.Owner]
	d := &direct{run: r, owners: make([]*metav1.OwnerReference, len(r.w.Groups))}
	if hold == nil {
		return d, nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for i := range d.owners {
		group.Go(func() (err error) {
			d.owners[i], err = hold(ctx, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("creating owners of pods: %w", err)
	}
	return d, nil
}

// scaler makes pods by creating and scaling ReplicaSets.
type scaler struct {
	run *run
	// replicas: group -> replicas asked for so far.
	replicas map[int]int
}

func (s *scaler) create(ctx context.Context, pods []int) error {
	var order []int
	more := map[int]int{}
	for _, pod := range pods {
		group := s.run.w.Pods[pod]
		if more[group] == 0 {
			order = append(order, group)
		}
		more[group]++
	}
	for _, group := range order {
		if err := s.scale(ctx, group, more[group]); err != nil {
			return fmt.Errorf("scaling ReplicaSet %s: %w", groupName(group), err)
		}
	}
	return nil
}

func (s *scaler) scale(ctx context.Context, group, more int) error {
	sets := s.run.bed.Clients().AppsV1().ReplicaSets(s.run.namespace)
	old := s.replicas[group]
	s.replicas[group] += more
	if old == 0 {
		_, err := sets.Create(ctx, s.run.replicaSet(group, more), metav1.CreateOptions{})
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"replicas": s.replicas[group]}})
	if err != nil {
		return err
	}
	_, err = sets.Patch(ctx, groupName(group), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// direct creates pods itself.
type direct struct {
	run *run
	// owners of the groups, nil for bare pods.
	owners []*metav1.OwnerReference
}

func (d *direct) create(ctx context.Context, pods []int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for _, pod := range pods {
		group.Go(func() error { return d.createOne(ctx, pod) })
	}
	return group.Wait()
}

func (d *direct) createOne(ctx context.Context, i int) error {
	pod := d.run.pod(i, d.owners[d.run.w.Pods[i]])
	if _, err := d.run.bed.Clients().CoreV1().Pods(d.run.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating pod: %w", err)
	}
	return nil
}
