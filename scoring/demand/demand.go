package demand

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// What kube-scheduler counts, in scoring only, for a container that requests no
// CPU or memory. Source: k8s.io/kubernetes pkg/scheduler/util/pod_resources.go.
const (
	defaultMilliCPU = 100
	defaultMemory   = 200 * 1024 * 1024
)

// Demand is what a pod asks of a node, in integers.
type Demand struct {
	// GPUs are the requested GPU resources, sorted by name, each with a positive count.
	GPUs []GPURequest
	// Requests are all requests as the scheduler's filter counts them, GPUs
	// included: init containers, sidecars, overhead and pod-level resources too.
	Requests Amounts
	// ScoringCPU (millicores) and ScoringMemory (bytes) are what the scheduler's
	// scoring counts for the pod once it is on a node, with its defaults for
	// containers that state none.
	ScoringCPU, ScoringMemory int64
	// FitCPU and FitMemory are what NodeResourcesFit counts for the pod while it
	// is being placed: the same, but without what the pod requests as a whole.
	FitCPU, FitMemory int64
}

// GPURequest is a count of one GPU resource.
type GPURequest struct {
	Name  corev1.ResourceName
	Count int64
}

// Of computes the demand of a pod. The reason is ReasonNoGPU when it asks
// for no configured GPU resource, ReasonInvalidRequest when it asks for one in
// a quantity the API server will refuse, and ReasonTooLarge when it asks for more than
// MaxResources.
func Of(pod *corev1.Pod, gpus config.Resources) (Demand, steering.Reason) {
	if HasManyResources(pod) {
		return Demand{}, steering.ReasonTooLarge
	}
	pod = WithDefaultedRequests(pod)
	// What the status of a new pod says was written by its author.
	d := OfStored(pod, gpus, false)
	if reason := checkGPUQuantities(pod, gpus); reason != steering.ReasonNone {
		return d, reason
	}
	if len(d.GPUs) == 0 {
		return d, steering.ReasonNoGPU
	}
	if len(d.Requests) > MaxResources {
		return d, steering.ReasonTooLarge
	}
	return d, steering.ReasonNone
}

// OfStored computes the demand of a pod whose requests are defaulted, as they are
// in every pod that the API server stores. useStatus counts what in-place resizing
// reports in the status.
func OfStored(pod *corev1.Pod, gpus config.Resources, useStatus bool) Demand {
	// As NodeInfo counts a pod, pkg/scheduler/framework/types.go.
	options := resourcehelper.PodResourcesOptions{UseStatusResources: useStatus, InPlacePodLevelResourcesVerticalScalingEnabled: useStatus}
	requests := resourcehelper.PodRequests(pod, options)
	scoring, fit := requests, requests
	if useStatus || !statesAll(pod) {
		options.NonMissingContainerRequests = missingRequests(pod, requests)
		scoring = resourcehelper.PodRequests(pod, options)
		// As NodeResourcesFit scores one: resource_allocation.go of the plugin, whose
		// scorer is built without the options for resources of the whole pod.
		fit = resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
			SkipPodLevelResources:       true,
			NonMissingContainerRequests: defaultRequests,
		})
	}
	d := Demand{
		Requests:      NewAmounts(requests),
		ScoringCPU:    amountOf(corev1.ResourceCPU, scoring[corev1.ResourceCPU]),
		ScoringMemory: amountOf(corev1.ResourceMemory, scoring[corev1.ResourceMemory]),
		FitCPU:        amountOf(corev1.ResourceCPU, fit[corev1.ResourceCPU]),
		FitMemory:     amountOf(corev1.ResourceMemory, fit[corev1.ResourceMemory]),
	}
	d.GPUs = gpusOf(d.Requests, gpus)
	return d
}

// gpusOf returns those of the requests that are for GPUs.
func gpusOf(requests Amounts, gpus config.Resources) (list []GPURequest) {
	for _, r := range requests {
		if gpus.IsGPU(string(r.Name)) {
			list = append(list, GPURequest{Name: r.Name, Count: r.Value})
		}
	}
	return list
}

// statesAll tells whether every container requests CPU and memory and the pod as a
// whole requests nothing: then the scheduler counts the same everywhere.
func statesAll(pod *corev1.Pod) bool {
	if pod.Spec.Resources != nil {
		return false
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			_, cpu := containers[i].Resources.Requests[corev1.ResourceCPU]
			_, memory := containers[i].Resources.Requests[corev1.ResourceMemory]
			if !cpu || !memory {
				return false
			}
		}
	}
	return true
}

// defaultRequests is what the scheduler's scoring counts for a container that
// requests nothing. It is never changed.
var defaultRequests = corev1.ResourceList{
	corev1.ResourceCPU:    *resource.NewMilliQuantity(defaultMilliCPU, resource.DecimalSI),
	corev1.ResourceMemory: *resource.NewQuantity(defaultMemory, resource.BinarySI),
}

// missingRequests is what containers without requests count for: the defaults,
// but for a pod with requests of its own only those of a resource that neither it
// nor a container requests.
func missingRequests(pod *corev1.Pod, requests corev1.ResourceList) corev1.ResourceList {
	if !resourcehelper.IsPodLevelRequestsSet(pod) {
		return defaultRequests
	}
	missing := corev1.ResourceList{}
	for name, q := range defaultRequests {
		if _, ok := requests[name]; !ok {
			missing[name] = q
		}
	}
	return missing
}

// checkGPUQuantities refuses GPU quantities that are negative, fractional or too
// large. They are checked per container, since two halves sum up to a whole.
func checkGPUQuantities(pod *corev1.Pod, gpus config.Resources) steering.Reason {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for _, list := range []corev1.ResourceList{containers[i].Resources.Requests, containers[i].Resources.Limits} {
				for name, q := range list {
					if gpus.IsGPU(string(name)) && !isWholeCount(q) {
						return steering.ReasonInvalidRequest
					}
				}
			}
		}
	}
	return steering.ReasonNone
}

func isWholeCount(q resource.Quantity) bool {
	return q.Sign() >= 0 && q.CmpInt64(MaxAmount) < 0 && IsWhole(q)
}

// IsWhole tells whether a quantity is a whole number.
func IsWhole(q resource.Quantity) bool {
	rounded := q.DeepCopy()
	return rounded.RoundUp(0) // false when a fraction was lost
}

// WithDefaultedRequests returns the pod with requests set from limits where a
// container states only limits, as the API server's defaulting does. The pod
// itself is never changed.
func WithDefaultedRequests(pod *corev1.Pod) *corev1.Pod {
	if !lacksRequests(pod.Spec.Containers) && !lacksRequests(pod.Spec.InitContainers) {
		return pod
	}
	out := *pod
	out.Spec.Containers = defaultedContainers(pod.Spec.Containers)
	out.Spec.InitContainers = defaultedContainers(pod.Spec.InitContainers)
	return &out
}

func lacksRequests(containers []corev1.Container) bool {
	for i := range containers {
		for name := range containers[i].Resources.Limits {
			if _, ok := containers[i].Resources.Requests[name]; !ok {
				return true
			}
		}
	}
	return false
}

func defaultedContainers(containers []corev1.Container) []corev1.Container {
	out := slices.Clone(containers)
	for i := range out {
		requests := out[i].Resources.Requests.DeepCopy()
		if requests == nil {
			requests = corev1.ResourceList{}
		}
		for name, q := range out[i].Resources.Limits {
			if _, ok := requests[name]; !ok {
				requests[name] = q
			}
		}
		out[i].Resources.Requests = requests
	}
	return out
}

// Load returns the demand as a charge on a node.
func (d *Demand) Load(kind Presence) Load {
	l := Load{
		Requests:      d.Requests,
		ScoringCPU:    d.ScoringCPU,
		ScoringMemory: d.ScoringMemory,
		Pods:          1,
	}
	var gpuPods Amounts
	for _, g := range d.GPUs {
		gpuPods = append(gpuPods, Amount{g.Name, 1})
	}
	switch kind {
	case Occupies:
		l.Occupants = gpuPods
	case drains:
		l.Terminating = gpuPods
	case everywhere:
	}
	return l
}

// Presence is what a GPU pod says about its node, besides what it uses.
type Presence int

const (
	// Occupies says that the node is in use.
	Occupies Presence = iota
	// drains: the pod is terminating; the node may be on its way out.
	drains
	// everywhere: a pod that belongs to its node, as one of a DaemonSet, says nothing.
	everywhere
)

// LoadOf returns what a stored pod takes of its node, of a pod with too many resources as
// much as counts (see MaxResources).
func LoadOf(pod *corev1.Pod, gpus config.Resources) Load {
	pod = WithFewResources(pod, gpus)
	d := OfStored(pod, gpus, !statusAgrees(pod))
	if counted := d.Requests.few(gpus); len(counted) < len(d.Requests) {
		d.Requests, d.GPUs = counted, gpusOf(counted, gpus)
	}
	switch {
	case steering.IsNodePod(pod):
		return d.Load(everywhere)
	case pod.DeletionTimestamp != nil:
		return d.Load(drains)
	default:
		return d.Load(Occupies)
	}
}
