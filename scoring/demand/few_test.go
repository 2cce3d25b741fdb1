package demand_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// named returns so many extended resources with names of that length.
func named(count, length int) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := range count {
		name := fmt.Sprintf("example.com/%03d", i)
		out[corev1.ResourceName(name+strings.Repeat("x", length-len(name)))] = resource.MustParse("1")
	}
	return out
}

func withResources(lists ...corev1.ResourceList) *corev1.Pod {
	pod := &corev1.Pod{}
	for _, list := range lists {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: list}})
	}
	return pod
}

// As many resources as pods of the largest machines ask for count in full; of more, those
// that matter most.
func TestLoadOfManyResources(t *testing.T) {
	usual := clustertest.List("cpu", "1", "memory", "1Gi", "ephemeral-storage", "1Gi", clustertest.NVIDIA, "1")
	const names = demand.MaxResources - 4
	tests := map[string]struct {
		others corev1.ResourceList
		want   int // of them, -1: some
	}{
		"none":                    {nil, 0},
		"as many as count":        {named(names, 40), names},
		"one more":                {named(names+1, 40), names},
		"many":                    {named(1000, 40), names},
		"names of usual length":   {named(15, 60), 15},
		"names as long as may be": {named(names, 63), -1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			load := demand.LoadOf(withResources(usual, tc.others), config.Default().Resources)
			for name, q := range usual {
				if load.Requests.Get(name) < q.Value() {
					t.Errorf("%s: %d, want %d at least", name, load.Requests.Get(name), q.Value())
				}
			}
			if got := len(load.Requests) - len(usual); tc.want >= 0 && got != tc.want {
				t.Errorf("%d others count, want %d", got, tc.want)
			}
			if load.Bytes() > demand.MaxLoadBytes {
				t.Errorf("the load takes %d bytes", load.Bytes())
			}
			if load.Occupants.Get(clustertest.NVIDIA) != 1 {
				t.Errorf("occupants %+v", load.Occupants)
			}
		})
	}
}

// A load of nothing but GPUs with the longest names is the largest there is.
func TestMaxLoadBytes(t *testing.T) {
	list := corev1.ResourceList{}
	for i := range 1000 {
		list[corev1.ResourceName(fmt.Sprintf("%s%026d", "nvidia.com/mig-", i))] = resource.MustParse("1")
	}
	load := demand.LoadOf(withResources(list), config.Default().Resources)
	if got := load.Bytes(); got > demand.MaxLoadBytes || got < demand.MaxLoadBytes-100 || len(load.Occupants) != demand.MaxResources {
		t.Errorf("%d GPUs take %d bytes, want about %d", len(load.Occupants), got, demand.MaxLoadBytes)
	}
}

// Leaving resources out of each container first changes nothing about what counts.
func TestWithFewResources(t *testing.T) {
	gpus := config.Default().Resources
	random := rand.New(rand.NewPCG(3, 3))
	for i := range 200 {
		pod := withResources()
		for range 1 + random.IntN(4) {
			list := named(random.IntN(3*demand.MaxResources), 20)
			for name := range list {
				if random.IntN(2) == 0 {
					delete(list, name)
				}
			}
			if random.IntN(2) == 0 {
				list["cpu"], list[clustertest.MIG] = resource.MustParse("1"), resource.MustParse("1")
			}
			pod.Spec.Containers = append(pod.Spec.Containers, withResources(list).Spec.Containers...)
		}
		before := pod.DeepCopy()
		want := demand.Few(demand.OfStored(pod, gpus, false).Requests, gpus)
		if diff := cmp.Diff(want, demand.LoadOf(pod, gpus).Requests); diff != "" {
			t.Fatalf("pod %d (-want +got):\n%s", i, diff)
		}
		if diff := cmp.Diff(before, pod); diff != "" {
			t.Fatalf("pod %d was changed:\n%s", i, diff)
		}
	}
}

// Nobody decides about a pod that asks for more resources than count.
func TestDemandOfManyResources(t *testing.T) {
	gpu := clustertest.List(clustertest.NVIDIA, "1")
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want steering.Reason
	}{
		"as many as count":        {withResources(gpu, named(demand.MaxResources-1, 40)), steering.ReasonNone},
		"one more":                {withResources(gpu, named(demand.MaxResources, 40)), steering.ReasonTooLarge},
		"many in one container":   {withResources(gpu, named(5000, 40)), steering.ReasonTooLarge},
		"many limits":             {&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container(named(5000, 40))}}}, steering.ReasonTooLarge},
		"many for the whole pod":  {&corev1.Pod{Spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: named(5000, 40)}}}, steering.ReasonTooLarge},
		"much overhead":           {&corev1.Pod{Spec: corev1.PodSpec{Overhead: named(5000, 40)}}, steering.ReasonTooLarge},
		"many in init containers": {&corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{container(named(5000, 40))}}}, steering.ReasonTooLarge},
	} {
		if _, reason := demand.Of(tc.pod, config.Default().Resources); reason != tc.want {
			t.Errorf("%s: reason %q, want %q", name, reason, tc.want)
		}
	}
}
