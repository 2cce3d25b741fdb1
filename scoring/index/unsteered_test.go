package index_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/watch"
)

// Pods that appear without a decision count once, when they look as if we should
// have been asked about them.
func TestUnsteered(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want int
	}{
		"not steered":     {clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1")), 1},
		"steered":         {clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) { p.Annotations = map[string]string{config.AnnotationSteering: "ranked"} }), 0},
		"no GPU":          {clustertest.GPUPod("p", clustertest.List("cpu", "1")), 0},
		"other namespace": {clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) { p.Namespace = "other" }), 0},
		"opted out":       {clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) { p.Labels = map[string]string{config.LabelEnabled: "false"} }), 0},
		"bound by hand":   {clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("g1")), 0},
		"of a DaemonSet":  {clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), clustertest.OwnedByDaemonSet), 0},
		"other scheduler": {clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }), 0},
		"gated":           {clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New(t, nil, clustertest.GPUNode("g1", clustertest.List(clustertest.NVIDIA, "8")))
			if err := errors.Join(watch.Pods(c.Index).Add(tc.pod), watch.Pods(c.Index).Update(tc.pod), watch.Pods(c.Index).Replace([]any{tc.pod}, "")); err != nil {
				t.Fatal(err)
			}
			if got := c.Unsteered(); got != tc.want {
				t.Errorf("%d unsteered pods, want %d", got, tc.want)
			}
		})
	}
}

// What counts is how a pod appeared. Its gates may open later, or its label change, and
// nobody is asked about that.
func TestUnsteeredAtFirst(t *testing.T) {
	gated := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })
	optedOut := clustertest.GPUPod("q", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) { p.Labels = map[string]string{config.LabelEnabled: "false"} })
	c := clustertest.New(t, nil, clustertest.GPUNode("g1", clustertest.List(clustertest.NVIDIA, "8")), gated, optedOut)
	for _, pod := range []*corev1.Pod{gated, optedOut} {
		pod = pod.DeepCopy()
		pod.Spec.SchedulingGates, pod.Labels = nil, nil
		if err := errors.Join(watch.Pods(c.Index).Update(pod), watch.Pods(c.Index).Update(pod)); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Unsteered(); got != 0 {
		t.Errorf("%d unsteered pods, want none", got)
	}
	if seen := c.Leaks()["pending pods"]; seen != 2 {
		t.Errorf("%d pending pods are known, want 2", seen)
	}
	err := watch.Pods(c.Index).Replace(nil, "")
	if seen := c.Leaks()["pending pods"]; err != nil || seen != 0 {
		t.Errorf("error %v; %d pending pods are known after all are gone", err, seen)
	}
}
