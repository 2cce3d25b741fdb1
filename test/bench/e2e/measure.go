package main

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

const (
	// parallelism is how many creations are in flight.
	parallelism = 32
	// boundTimeout is how long nothing may be bound.
	boundTimeout = time.Minute
	// cleanInterval is the pause between two looks at what is left of a run.
	cleanInterval = 100 * time.Millisecond
)

// figures are those of one run.
type figures struct {
	// created and scheduled are pods per second.
	created, scheduled float64
	// steered is how many pods carry terms of ours.
	steered int
	// cpu is the CPU time per pod, while they are bound, of the scheduler, the API
	// server and gpu-binpacker, in microseconds.
	cpu [3]float64
}

// measure does one run in a namespace of its own, which is empty afterwards.
func (b *bed) measure(ctx context.Context, o options, system, namespace string) (f figures, err error) {
	pods := o.pods
	if err := b.CreateNamespace(ctx, namespace, labels[system]); err != nil {
		return f, err
	}
	var owners []metav1.OwnerReference
	if o.owner == replicaSet {
		if owners, err = b.createOwner(ctx, namespace); err != nil {
			return f, err
		}
	}
	if err := b.waitLabels(ctx, system, namespace); err != nil {
		return f, err
	}
	scheduler := b.Component(controlplane.KubeScheduler)
	if err := scheduler.Signal(syscall.SIGSTOP); err != nil {
		return f, err
	}
	began := time.Now()
	err = b.create(ctx, namespace, owners, pods)
	f.created = float64(pods) / time.Since(began).Seconds()
	if resumed := scheduler.Signal(syscall.SIGCONT); err == nil {
		err = resumed
	}
	if err != nil {
		return f, err
	}
	before, err := b.cpu()
	if err != nil {
		return f, err
	}
	if f.steered, f.scheduled, err = b.bind(ctx, namespace, pods); err != nil {
		return f, err
	}
	after, err := b.cpu()
	if err != nil {
		return f, err
	}
	for i := range f.cpu {
		f.cpu[i] = float64((after[i] - before[i]).Microseconds()) / float64(pods)
	}
	if want := map[string]int{ours: pods}[system]; f.steered != want {
		return f, fmt.Errorf("%d of %d pods were steered, not %d: the run shows nothing", f.steered, pods, want)
	}
	return f, b.clean(ctx, namespace)
}

// waitLabels waits until a pod of the namespace gets to its webhook: the API server
// reads the namespace's labels from a cache.
func (b *bed) waitLabels(ctx context.Context, system, namespace string) error {
	if system != ours {
		return nil
	}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	return wait.PollUntilContextTimeout(ctx, cleanInterval, boundTimeout, true, func(ctx context.Context) (bool, error) {
		pod, err := b.clients.CoreV1().Pods(namespace).Create(ctx, newPod(0, nil), dryRun)
		return err == nil && pod.Annotations[config.AnnotationSteering] != "", nil
	})
}

// The owners of pods. No controller runs, so that only this program makes pods.
const (
	replicaSet = "replicaset"
	bare       = "bare"
)

var podLabels = map[string]string{"app": "train"}

// createOwner creates a ReplicaSet that selects the pods.
func (b *bed) createOwner(ctx context.Context, namespace string) ([]metav1.OwnerReference, error) {
	set, err := b.clients.AppsV1().ReplicaSets(namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "train"},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: podLabels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: podLabels}, Spec: newPod(0, nil).Spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}, nil
}

func newPod(i int, owners []metav1.OwnerReference) *corev1.Pod {
	amounts := corev1.ResourceList{
		gpu: resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("64Gi"),
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod-" + strconv.Itoa(i), Labels: podLabels, OwnerReferences: owners},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "train", Image: "train:1", Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts},
		}}},
	}
}

func (b *bed) create(ctx context.Context, namespace string, owners []metav1.OwnerReference, pods int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for i := range pods {
		group.Go(func() error {
			_, err := b.clients.CoreV1().Pods(namespace).Create(ctx, newPod(i, owners), metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// bind waits until all pods are bound. It returns how many are steered, and how many
// were bound per second from the first to the last.
func (b *bed) bind(ctx context.Context, namespace string, pods int) (steered int, perSecond float64, err error) {
	list, err := b.clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, err
	}
	bound := map[string]bool{}
	for i := range list.Items {
		if list.Items[i].Annotations[config.AnnotationSteering] != "" {
			steered++
		}
		if list.Items[i].Spec.NodeName != "" {
			bound[list.Items[i].Name] = true
		}
	}
	// The API server ends the watch of a reader that is slow on a busy machine.
	watched, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return b.clients.CoreV1().Pods(namespace).Watch(ctx, o)
		},
	})
	if err != nil {
		return 0, 0, err
	}
	defer watched.Stop()
	before, began := len(bound), time.Now()
	for len(bound) < pods {
		select {
		case event := <-watched.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type != watch.Modified {
				return 0, 0, fmt.Errorf("the watch of pods ended with %s %T", event.Type, event.Object)
			}
			if pod.Spec.NodeName != "" {
				bound[pod.Name] = true
			}
		case <-time.After(boundTimeout):
			return 0, 0, fmt.Errorf("%d of %d pods are bound, and no other for %s", len(bound), pods, boundTimeout)
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
	}
	return steered, float64(pods-before) / time.Since(began).Seconds(), nil
}

// clean removes the pods, and waits until scheduler and webhook have seen it.
func (b *bed) clean(ctx context.Context, namespace string) error {
	pods := b.clients.CoreV1().Pods(namespace)
	err := wait.PollUntilContextTimeout(ctx, cleanInterval, boundTimeout, true, func(ctx context.Context) (bool, error) {
		if err := pods.DeleteCollection(ctx, *metav1.NewDeleteOptions(0), metav1.ListOptions{}); err != nil {
			return false, err
		}
		left, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil && len(left.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("deleting the pods of %s: %w", namespace, err)
	}
	err = wait.PollUntilContextTimeout(ctx, cleanInterval, boundTimeout, true, func(ctx context.Context) (bool, error) {
		metrics, err := b.Metrics(ctx, controlplane.KubeScheduler)
		if err != nil {
			return false, err
		}
		return metrics.Sum("scheduler_cache_size", map[string]string{"type": "pods"}) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the scheduler to forget the pods of %s: %w", namespace, err)
	}
	return b.waitIndex(ctx)
}
