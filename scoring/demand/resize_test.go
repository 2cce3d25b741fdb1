package demand_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
)

// Wherever the status is said to agree, what a pod takes is the same with it. Names
// of containers are unique among those of both kinds, as the API server makes sure.
func TestStatusAgrees(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	agreed := 0
	for i := range 5000 {
		pod := randomlyResized(random)
		if !demand.StatusAgrees(pod) {
			continue
		}
		agreed++
		with, without := demand.OfStored(pod, config.Default().Resources, true), demand.OfStored(pod, config.Default().Resources, false)
		if diff := cmp.Diff(with, without); diff != "" {
			t.Fatalf("pod %d: with and without its status: %s\n%+v", i, diff, pod)
		}
	}
	if agreed < 500 || agreed > 4500 {
		t.Errorf("the status of %d of 5000 pods agrees: the test shows little", agreed)
	}
}

// A pod being resized takes the larger of what it had and what it asks for.
func TestResizedPod(t *testing.T) {
	pod := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1", "cpu", "2"), clustertest.On("n"))
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:      pod.Spec.Containers[0].Name,
		Resources: &corev1.ResourceRequirements{Requests: clustertest.List(clustertest.NVIDIA, "1", "cpu", "6")},
	}}
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8", "cpu", "8")), pod)
	if got := c.StateOf("n").Used.Requests.Get(corev1.ResourceCPU); got != 6000 {
		t.Errorf("%d millicores used while the container still has 6 CPUs, want 6000", got)
	}
}

func randomlyResized(random *rand.Rand) *corev1.Pod {
	pod := &corev1.Pod{}
	for i := range 1 + random.IntN(2) {
		c, s := randomContainer(random, fmt.Sprintf("c%d", i))
		pod.Spec.Containers, pod.Status.ContainerStatuses = append(pod.Spec.Containers, c), append(pod.Status.ContainerStatuses, s...)
	}
	for i := range random.IntN(3) {
		c, s := randomContainer(random, fmt.Sprintf("i%d", i))
		if random.IntN(2) == 0 {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		pod.Spec.InitContainers, pod.Status.InitContainerStatuses = append(pod.Spec.InitContainers, c), append(pod.Status.InitContainerStatuses, s...)
	}
	if random.IntN(20) == 0 {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
	}
	if random.IntN(20) == 0 {
		pod.Status.AllocatedResources = randomRequests(random)
		pod.Status.Resources = &corev1.ResourceRequirements{Requests: randomRequests(random)}
	}
	if random.IntN(10) == 0 {
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: clustertest.List("cpu", strconv.Itoa(8+random.IntN(4)))}
	}
	return pod
}

func randomContainer(random *rand.Rand, name string) (corev1.Container, []corev1.ContainerStatus) {
	c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: randomRequests(random)}}
	s := corev1.ContainerStatus{Name: name}
	orOther := func() corev1.ResourceList {
		switch random.IntN(8) {
		case 0:
			return randomRequests(random)
		case 1:
			return nil
		}
		return c.Resources.Requests
	}
	if random.IntN(3) == 0 {
		return c, nil
	}
	s.AllocatedResources = orOther()
	if random.IntN(3) > 0 {
		s.Resources = &corev1.ResourceRequirements{Requests: orOther()}
	}
	return c, []corev1.ContainerStatus{s}
}

func randomRequests(random *rand.Rand) corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, q := range clustertest.List("cpu", strconv.Itoa(random.IntN(3)), "memory", strconv.Itoa(1+random.IntN(2))+"Gi", clustertest.NVIDIA, strconv.Itoa(random.IntN(2))) {
		if random.IntN(3) > 0 {
			all[name] = q
		}
	}
	return all
}
