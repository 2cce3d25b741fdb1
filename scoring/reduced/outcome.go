package reduced

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Outcome is what a pod shows of how pods with GPUs start on its node. It follows from what
// the API shows of the pod and from nothing else, so that everybody who sees the pod says
// the same.
type Outcome int

const (
	// OutcomeUnknown says that no container with GPUs ran, and none failed to start. A program that
	// ran and failed shows that the node starts pods.
	OutcomeUnknown Outcome = iota
	// OutcomeStarted says that a container with GPUs ran.
	OutcomeStarted
	// OutcomeRefused says that the kubelet did not take the pod, or its runtime could not start a
	// container with GPUs, and none ran. A command that does not exist looks the same.
	OutcomeRefused
	// OutcomeRefusedShape says that the kubelet found no devices and CPUs that are near enough to
	// each other. Pods that ask for something else may get theirs.
	OutcomeRefusedShape
)

// outcomeOf returns the outcome of a pod with GPUs, and when it was, by the clock of the
// node, though not before the pod was created.
func outcomeOf(pod *corev1.Pod, gpus config.Resources) (Outcome, time.Time) {
	if pod.Spec.NodeName == "" {
		return OutcomeUnknown, time.Time{}
	}
	// Status.StartTime is when the kubelet first saw the pod. It stays when a kubelet that
	// was restarted refuses a pod that ran: that refusal is older than the pod's own start.
	taken := pod.CreationTimestamp.Time
	if start := pod.Status.StartTime; start != nil {
		taken = later(taken, start.Time)
	}
	ran, failed := tries(pod, gpus)
	switch {
	case ran.any:
		return OutcomeStarted, later(taken, ran.latest)
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "TopologyAffinityError":
		return OutcomeRefusedShape, taken
	case isRefusal(pod):
		return OutcomeRefused, taken
	case failed.any:
		return OutcomeRefused, later(taken, failed.latest)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodRunning && !failed.known:
		return OutcomeStarted, taken // where nobody reports containers
	}
	return OutcomeUnknown, time.Time{}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// isRefusal tells whether the kubelet refused to admit a pod because it could not have
// the devices or resources that the scheduler thought were free. Reasons: k8s.io/kubernetes
// pkg/kubelet/lifecycle. Resources are short (OutOf...) as well where the pod's author, not
// the scheduler, has named the node. We leave such a pod alone, so that our annotation says
// that it is none.
func isRefusal(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodFailed {
		return false
	}
	reason := pod.Status.Reason
	return reason == "UnexpectedAdmissionError" || strings.HasPrefix(reason, "OutOf") && pod.Annotations[config.AnnotationSteering] != ""
}

// startFailures are the reasons of containers that the runtime could not create or start:
// containerd's and CRI-O's StartError, cri-dockerd's ContainerCannotRun, and those of
// containers that the kubelet tries again.
var startFailures = sets.New("StartError", "ContainerCannotRun", "CreateContainerError", "RunContainerError")

// moments are how often something was seen of containers, and when last, as far as that is
// known.
type moments struct {
	latest time.Time
	// known: somebody reports the containers; any: something was seen.
	known, any bool
}

func (m *moments) see(at metav1.Time) {
	m.any = true
	m.latest = later(m.latest, at.Time)
}

// maxRestarts is up to how many restarts the two states that a status holds tell of all
// tries. Later on they do not tell whether one of the first succeeded.
const maxRestarts = 1

// tries returns when containers with GPUs ran, and when they could not be started.
func tries(pod *corev1.Pod, gpus config.Resources) (ran, failed moments) {
	names := withGPUs(pod, gpus)
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			if !names.Has(s.Name) {
				continue
			}
			failed.known = true
			if s.State.Running != nil {
				ran.see(s.State.Running.StartedAt)
			}
			for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
				switch {
				case t == nil:
				case !startFailures.Has(t.Reason):
					if t.StartedAt.Unix() > 0 { // zero or 1970: nobody knows of a start
						ran.see(t.StartedAt)
					}
				case s.RestartCount <= maxRestarts:
					failed.see(t.FinishedAt)
				}
			}
			if w := s.State.Waiting; w != nil && startFailures.Has(w.Reason) && s.RestartCount <= maxRestarts {
				failed.any = true
			}
		}
	}
	return ran, failed
}

// withGPUs are the names of the containers that ask for GPUs: that another one starts says
// nothing.
func withGPUs(pod *corev1.Pod, gpus config.Resources) sets.Set[string] {
	names := sets.New[string]()
	eachResource(pod, func(container string, resource corev1.ResourceName) {
		if gpus.IsGPU(string(resource)) {
			names.Insert(container)
		}
	})
	return names
}

// eachResource calls do for what each container asks for, some of it twice.
func eachResource(pod *corev1.Pod, do func(container string, resource corev1.ResourceName)) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for _, list := range []corev1.ResourceList{containers[i].Resources.Limits, containers[i].Resources.Requests} {
				for name := range list {
					do(containers[i].Name, name)
				}
			}
		}
	}
}

// Speaks tells what the outcome of a pod says of its node, for those who do not know which
// resources are GPUs: all extended resources are.
func Speaks(pod *corev1.Pod) Outcome {
	var extended config.Resources
	eachResource(pod, func(_ string, resource corev1.ResourceName) {
		if strings.Contains(string(resource), "/") {
			extended.Names = append(extended.Names, string(resource))
		}
	})
	outcome, _ := outcomeOf(pod, extended)
	if outcome == OutcomeStarted && len(extended.Names) == 0 {
		return OutcomeUnknown
	}
	return outcome
}
