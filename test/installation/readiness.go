package installation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

const (
	// probePeriod and probeTimeout are those of a readiness probe, but that the period
	// is not five seconds: no test should wait for it.
	probePeriod  = time.Second
	probeTimeout = time.Second
	// replicasMetric is how many replicas each of them sees.
	replicasMetric = "gpu_binpacker_replicas"
	// gate keeps the scheduler from giving the pods of the replicas a node.
	gate = "example.com/runs-as-a-process"
)

// startReadiness creates the replicas' pods, keeps their condition Ready in step with
// the processes until background ends, and returns when each replica has seen all of
// them.
func (i *Installation) startReadiness(ctx, background context.Context) error {
	pod := i.bundle.pod("")
	// An earlier installation may have had more.
	if err := i.cp.Client().DeleteAllOf(ctx, pod, client.InNamespace(pod.Namespace), client.MatchingLabels(pod.Labels), client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("deleting the pods of earlier replicas: %w", err)
	}
	pods := make([]*corev1.Pod, len(i.replicas))
	for n, replica := range i.replicas {
		pods[n] = i.bundle.pod(replica.Name())
		pods[n].Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
		if err := i.cp.Client().Create(ctx, pods[n]); err != nil {
			return fmt.Errorf("creating the pod of %s: %w", replica.Name(), err)
		}
		if err := i.setReady(ctx, pods[n], true); err != nil {
			return err
		}
	}
	i.background.Go(func() { i.followReadiness(background, pods) })
	for _, replica := range i.replicas {
		if err := replica.waitReplicas(ctx, len(i.replicas)); err != nil {
			return err
		}
	}
	return nil
}

// followReadiness takes the kubelet's part: it probes the replicas. Their pods end with
// them, unless the API server is away.
func (i *Installation) followReadiness(ctx context.Context, pods []*corev1.Pod) {
	for pause(ctx, probePeriod) {
		for n, pod := range pods {
			// The next probe tries again what failed while the API server was away.
			_ = i.setReady(ctx, pod, i.replicas[n].ready(ctx))
		}
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	for _, pod := range pods {
		_ = i.cp.Client().Delete(ending, pod, client.GracePeriodSeconds(0))
	}
}

// ready is one readiness probe.
func (r *Replica) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := controlplane.Read(ctx, http.DefaultClient, r.readyURL)
	return err == nil
}

// setReady writes the condition Ready, unless pod says already what is true.
func (i *Installation) setReady(ctx context.Context, pod *corev1.Pod, ready bool) error {
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	if ready {
		condition.Status = corev1.ConditionTrue
	}
	for _, now := range pod.Status.Conditions {
		if now.Type == condition.Type && now.Status == condition.Status {
			return nil
		}
	}
	before := pod.DeepCopy()
	pod.Status.Conditions = []corev1.PodCondition{condition}
	if err := i.cp.Client().Status().Patch(ctx, pod, client.StrategicMergeFrom(before)); err != nil {
		before.DeepCopyInto(pod)
		return fmt.Errorf("writing whether the pod of %s is ready: %w", pod.Name, err)
	}
	return nil
}

// waitReplicas waits until the replica sees so many, if it is of a version that tells.
func (r *Replica) waitReplicas(ctx context.Context, want int) error {
	last := errors.New("its metrics were not read")
	err := wait.PollUntilContextTimeout(ctx, waitInterval, waitTimeout, true, func(ctx context.Context) (bool, error) {
		metrics, err := r.Metrics(ctx)
		if err != nil {
			last = err
			return false, nil
		}
		seen := int(metrics.Sum(replicasMetric, nil))
		last = fmt.Errorf("it sees %d replicas", seen)
		return metrics[replicasMetric] == nil || seen == want, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waiting until %s sees %d replicas: %w", r.Name(), want, err), last)
	}
	return nil
}
