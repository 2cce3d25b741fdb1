package index_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// refused makes the pod one that its node's kubelet refused at that time. Its annotation
// says that the scheduler has chosen the node.
func refused(reason string, at time.Time) clustertest.PodOption {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{config.AnnotationSteering: config.SteeringRanked}
		p.CreationTimestamp, p.Status.StartTime = metav1.NewTime(at), &metav1.Time{Time: at}
		p.Status.Phase, p.Status.Reason = corev1.PodFailed, reason
	}
}

// of puts a pod into a namespace.
func of(namespace string) clustertest.PodOption {
	return func(p *corev1.Pod) { p.Namespace = namespace }
}

// created sets when a pod was created.
func created(at time.Time) clustertest.PodOption {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(at) }
}

// status sets the state of the pod's container.
func status(s corev1.ContainerStatus) clustertest.PodOption {
	return func(p *corev1.Pod) {
		s.Name = "c"
		p.Status.ContainerStatuses = []corev1.ContainerStatus{s}
	}
}

// startError is a container that the runtime could not start.
func startError(at time.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: "StartError", ExitCode: 128, StartedAt: metav1.Unix(0, 0), FinishedAt: metav1.NewTime(at),
	}}}
}

// runningSince is a container that runs.
func runningSince(at time.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}}
}

// C64: containers that the runtime cannot start, by restart policy.
func TestStartErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		phase  corev1.PodPhase
		status func(now time.Time) corev1.ContainerStatus
		want   string
	}{
		"never restarted": {corev1.PodFailed, startError, "g2"},
		"to be restarted": {corev1.PodRunning, func(now time.Time) corev1.ContainerStatus {
			return corev1.ContainerStatus{
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: startError(now).State,
			}
		}, "g2"},
		"not even created": {corev1.PodPending, func(time.Time) corev1.ContainerStatus {
			return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerError"}}}
		}, "g2"},
		"it ran before": {corev1.PodRunning, func(now time.Time) corev1.ContainerStatus {
			s := startError(now)
			s.RestartCount = 1
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: metav1.NewTime(now.Add(-time.Minute)), FinishedAt: metav1.NewTime(now)}
			return s
		}, "g1"},
		"whether it ran before is not known": {corev1.PodRunning, func(now time.Time) corev1.ContainerStatus {
			s := startError(now)
			s.RestartCount, s.LastTerminationState = 7, s.State
			return s
		}, "g1"},
		"no image": {corev1.PodPending, func(time.Time) corev1.ContainerStatus {
			return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}
		}, "g1"},
		"no configuration": {corev1.PodPending, func(time.Time) corev1.ContainerStatus {
			return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}}}
		}, "g1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := blackHole(t, nil)
			for i := range 10 {
				pod := clustertest.GPUPod(fmt.Sprint("p", i), clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("g1"), created(c.Clock), status(tc.status(c.Clock)), clustertest.Phase(tc.phase))
				setBound(c, pod)
				c.DeletePod(pod.UID) // whoever made it makes the next; what it showed stays
				c.Clock = c.Clock.Add(5 * time.Second)
			}
			wantFirst(t, c, tc.want)
		})
	}
}

// C72: a kubelet that was restarted refuses pods that ran for long, or had finished.
// Statuses with times, as kubelets write them, and without, as the case has them.
func TestKubeletRestart(t *testing.T) {
	for name, options := range map[string]func(began time.Time) []clustertest.PodOption{
		"with times": func(began time.Time) []clustertest.PodOption {
			return []clustertest.PodOption{func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: began} }}
		},
		"without times": func(time.Time) []clustertest.PodOption { return nil },
	} {
		for _, over := range []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded} {
			t.Run(fmt.Sprint(name, ", ", over), func(t *testing.T) {
				c := blackHole(t, nil)
				began := c.Clock
				pod := func(i int, more ...clustertest.PodOption) *corev1.Pod {
					all := append(options(began), created(began))
					return clustertest.GPUPod(fmt.Sprint("p", i), clustertest.List(clustertest.NVIDIA, "1"), append(all, more...)...)
				}
				for i := range 3 {
					c.SetPod(pod(i))
					c.SetPod(pod(i, clustertest.On("g1")))
					c.SetPod(pod(i, clustertest.On("g1"), clustertest.Phase(over)))
				}
				c.Clock = c.Clock.Add(10 * time.Second)
				for i := range 3 {
					c.SetPod(pod(i, clustertest.On("g1"), clustertest.Phase(corev1.PodFailed), func(p *corev1.Pod) { p.Status.Reason = "UnexpectedAdmissionError" }))
				}
				wantFirst(t, c, "g1")
			})
		}
	}
}

// What the topology manager refuses counts for pods with the same requests only.
func TestTopologyAffinity(t *testing.T) {
	c := blackHole(t, nil)
	one, two := clustertest.List(clustertest.NVIDIA, "1"), clustertest.List(clustertest.NVIDIA, "2")
	for i := range 3 {
		refuse(t, c, fmt.Sprint("refused-", i), "g1", "TopologyAffinityError")
		c.Clock = c.Clock.Add(time.Second)
		// Others start, which says nothing of these.
		c.SetPod(clustertest.GPUPod(fmt.Sprint("p", i), clustertest.List("cpu", "1", clustertest.NVIDIA, "0"), clustertest.On("g1"), created(c.Clock)))
		c.SetPod(clustertest.GPUPod("other-shape", two, clustertest.On("g1"), created(clustertest.Start), status(runningSince(c.Clock))))
		c.DeletePod("other-shape")
	}
	wantFirstFor(t, c, "team", one, "g2")
	wantFirstFor(t, c, "team", two, "g1")
	wantFirstFor(t, c, "other", one, "g1")
	if got := c.Size(); got.Backoff+got.NamespaceBackoff != 0 {
		t.Errorf("a shape that cannot be placed shows as %+v", got)
	}
	e := c.Explain(t.Context(), scoring.Request{Pod: clustertest.GPUPod("new", one), Namespace: "team"})
	want := []scoring.LeftOutNode{{Name: "g1", Reason: nodes.Backoff, Backoff: &index.Rule{Namespace: true, Requests: true}}}
	if diff := cmp.Diff(want, e.LeftOut); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	c.SetPod(clustertest.GPUPod("same-shape", one, clustertest.On("g1"), created(c.Clock)))
	wantFirstFor(t, c, "team", one, "g1")
}

// A node is in back-off for the GPU resource of the refused pods, not for another.
func TestBackoffByResource(t *testing.T) {
	both := clustertest.List(clustertest.NVIDIA, "8", clustertest.MIG, "7")
	c := clustertest.New(t, nil, clustertest.GPUNode("g1", both), clustertest.GPUNode("g2", both),
		clustertest.GPUPod("on-g1", clustertest.List(clustertest.NVIDIA, "6", clustertest.MIG, "6"), clustertest.On("g1"), created(clustertest.Start.Add(-time.Hour))))
	for i := range 4 {
		refuse(t, c, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError", of(fmt.Sprint("n", i)))
	}
	wantFirstFor(t, c, "team", clustertest.List(clustertest.NVIDIA, "1"), "g2")
	wantFirstFor(t, c, "team", clustertest.List(clustertest.MIG, "1"), "g1")
	for _, o := range c.Occupancy() {
		want := int64(8) // free on g2
		if o.Resource == clustertest.MIG {
			want = 7
		}
		if o.LargestFitting != want || o.Resource == clustertest.NVIDIA && o.FreeOnOccupied != 0 {
			t.Errorf("%+v", o)
		}
	}
}

// Failed pods stay in the API for long. A replica that was just started says of them what
// one says that saw them fail: those of a minute ago keep their node out, older ones do not.
func TestBackoffAtStart(t *testing.T) {
	for name, tc := range map[string]struct {
		age  time.Duration
		want string
	}{
		"a moment ago": {30 * time.Second, "g2"},
		"long ago":     {2 * time.Minute, "g1"},
	} {
		t.Run(name, func(t *testing.T) {
			at := clustertest.Start.Add(-tc.age)
			objects := []any{
				clustertest.GPUNode("g1", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("g2", clustertest.List(clustertest.NVIDIA, "8")),
				clustertest.GPUPod("on-g1", clustertest.List(clustertest.NVIDIA, "6"), clustertest.On("g1"), created(at.Add(-time.Hour))),
			}
			for i := range 3 {
				objects = append(objects, clustertest.GPUPod(fmt.Sprint("p", i), clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("g1"), refused("UnexpectedAdmissionError", at)))
			}
			wantFirst(t, clustertest.New(t, nil, objects...), tc.want)
		})
	}
}

// A GPU pod that starts ends the row and the back-off; anything else that starts does not.
func TestStartEndsBackoff(t *testing.T) {
	one, second := clustertest.List(clustertest.NVIDIA, "1"), time.Second
	for name, tc := range map[string]struct {
		pod  func(now time.Time) *corev1.Pod
		want string
	}{
		"a GPU pod runs": {func(now time.Time) *corev1.Pod {
			return clustertest.GPUPod("p", one, clustertest.On("g1"), created(now), status(runningSince(now)))
		}, "g1"},
		"its containers are not reported": {func(now time.Time) *corev1.Pod {
			return clustertest.GPUPod("p", one, clustertest.On("g1"), created(now))
		}, "g1"},
		"of another namespace": {func(now time.Time) *corev1.Pod {
			return clustertest.GPUPod("p", one, clustertest.On("g1"), created(now), of("other"))
		}, "g1"},
		"ran and failed": {func(now time.Time) *corev1.Pod {
			return clustertest.GPUPod("p", one, clustertest.On("g1"), created(now), clustertest.Phase(corev1.PodFailed), status(corev1.ContainerStatus{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1, StartedAt: metav1.NewTime(now), FinishedAt: metav1.NewTime(now)},
			}}))
		}, "g1"},
		"it had started before": {func(now time.Time) *corev1.Pod {
			return clustertest.GPUPod("p", one, clustertest.On("g1"), created(now.Add(-time.Hour)), status(runningSince(now.Add(-2*second))))
		}, "g2"},
		"on another node": {func(now time.Time) *corev1.Pod {
			return clustertest.GPUPod("p", one, clustertest.On("g2"), created(now))
		}, "g2"},
		"without GPUs": {func(now time.Time) *corev1.Pod {
			return clustertest.GPUPod("p", clustertest.List("cpu", "1"), clustertest.On("g1"), created(now))
		}, "g2"},
		"with another GPU": {func(now time.Time) *corev1.Pod {
			return clustertest.GPUPod("p", clustertest.List(clustertest.MIG, "1"), clustertest.On("g1"), created(now))
		}, "g2"},
		"only its sidecar runs": {func(now time.Time) *corev1.Pod {
			pod := clustertest.GPUPod("p", one, clustertest.On("g1"), created(now), status(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}))
			sidecar := runningSince(now)
			sidecar.Name = "sidecar"
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "sidecar"})
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, sidecar)
			return pod
		}, "g2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := blackHole(t, nil)
			for i := range 3 {
				refuse(t, c, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError")
			}
			wantFirst(t, c, "g2")
			c.Clock = c.Clock.Add(second)
			c.SetPod(tc.pod(c.Clock))
			wantFirst(t, c, tc.want)
			// The row begins anew, or it does not.
			c.Clock = c.Clock.Add(time.Minute)
			refuse(t, c, "refused-3", "g1", "UnexpectedAdmissionError")
			wantFirst(t, c, tc.want)
		})
	}
}
