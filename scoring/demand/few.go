package demand

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// The API server accepts any number of extended resources in a pod: 30,000 fit into one.
// Every one would be kept for each such pod and for its node, and be gone through with
// every event there.

const (
	// MaxResources is how many resources of a pod count. Real pods ask for up to 14: CPU,
	// memory, ephemeral storage, huge pages of two sizes, GPUs, and a network device on each
	// of eight rails.
	MaxResources = 24
	// MaxNameBytes is how many bytes the names of these may have together: 40 each.
	MaxNameBytes = 1 << 10
	// amountBytes is what an Amount takes without its name.
	amountBytes = 24
	// loadBytes is what a Load takes without its amounts.
	loadBytes = 96
	// MaxLoadBytes is the most that the load of one pod takes: each resource in Requests and,
	// if all are GPUs, in Occupants.
	MaxLoadBytes = loadBytes + 2*MaxResources*amountBytes + MaxNameBytes
)

// precedence says which resources of a pod with too many count, lowest first: what every
// node has, then configured GPUs by name, then those by prefix, which anybody can continue.
func precedence(name corev1.ResourceName, gpus config.Resources) int {
	switch {
	case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage:
		return 0
	case slices.Contains(gpus.Names, string(name)):
		return 1
	case gpus.IsGPU(string(name)):
		return 2
	default:
		return 3
	}
}

// byPrecedence sorts the names of a pod's resources by which of them count first.
func byPrecedence(gpus config.Resources) func(a, b corev1.ResourceName) int {
	return func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(precedence(a, gpus), precedence(b, gpus)), cmp.Compare(a, b))
	}
}

// WithFewResources returns a pod each of whose lists of requests has at most MaxResources:
// those that may be among those of the whole pod that count. The pod itself is not changed;
// it is returned when there is nothing to leave out.
func WithFewResources(pod *corev1.Pod, gpus config.Resources) *corev1.Pod {
	if !HasManyResources(pod) {
		return pod
	}
	out := *pod
	out.Spec.Containers, out.Spec.InitContainers = fewInEach(pod.Spec.Containers, gpus), fewInEach(pod.Spec.InitContainers, gpus)
	out.Spec.Overhead = few(pod.Spec.Overhead, gpus)
	if r := pod.Spec.Resources; r != nil {
		out.Spec.Resources = &corev1.ResourceRequirements{Requests: few(r.Requests, gpus), Limits: few(r.Limits, gpus)}
	}
	return &out
}

// HasManyResources tells whether a list of requests or limits of the pod has more than
// MaxResources.
func HasManyResources(pod *corev1.Pod) bool {
	many := func(r *corev1.ResourceRequirements) bool {
		return len(r.Requests) > MaxResources || len(r.Limits) > MaxResources
	}
	inOne := func(c corev1.Container) bool { return many(&c.Resources) }
	return len(pod.Spec.Overhead) > MaxResources || pod.Spec.Resources != nil && many(pod.Spec.Resources) ||
		slices.ContainsFunc(pod.Spec.Containers, inOne) || slices.ContainsFunc(pod.Spec.InitContainers, inOne)
}

func fewInEach(containers []corev1.Container, gpus config.Resources) []corev1.Container {
	out := slices.Clone(containers)
	for i := range out {
		r := &out[i].Resources
		r.Requests, r.Limits = few(r.Requests, gpus), few(r.Limits, gpus)
	}
	return out
}

func few(list corev1.ResourceList, gpus config.Resources) corev1.ResourceList {
	if len(list) <= MaxResources {
		return list
	}
	names := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	slices.SortFunc(names, byPrecedence(gpus))
	out := make(corev1.ResourceList, MaxResources)
	for _, name := range names[:MaxResources] {
		out[name] = list[name]
	}
	return out
}

// few returns the amounts that count: at most MaxResources, whose names have at most
// MaxNameBytes.
func (a Amounts) few(gpus config.Resources) Amounts {
	if len(a) <= MaxResources && a.nameBytes() <= MaxNameBytes {
		return a
	}
	sorted := slices.Clone(a)
	byName := byPrecedence(gpus)
	slices.SortFunc(sorted, func(x, y Amount) int { return byName(x.Name, y.Name) })
	left := MaxNameBytes
	out := make(Amounts, 0, MaxResources)
	for _, one := range sorted {
		if left -= len(one.Name); left < 0 || len(out) == MaxResources {
			break
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(x, y Amount) int { return cmp.Compare(x.Name, y.Name) })
	return out
}

func (a Amounts) nameBytes() (bytes int) {
	for i := range a {
		bytes += len(a[i].Name)
	}
	return bytes
}

// Bytes is what the load takes in memory, when it shares nothing with others.
func (l Load) Bytes() int {
	return loadBytes + l.Requests.nameBytes() + amountBytes*(len(l.Requests)+len(l.Occupants)+len(l.Terminating))
}

// CountsEverywhere tells whether a resource is one that every node has, or one of the GPUs
// that are configured by their names.
func CountsEverywhere(name corev1.ResourceName, gpus config.Resources) bool {
	return precedence(name, gpus) <= 1
}

// Only returns the part of a load that is of some resources.
func (l Load) Only(counts func(corev1.ResourceName) bool) Load {
	others := func(a Amount) bool { return !counts(a.Name) }
	l.Requests = slices.DeleteFunc(slices.Clone(l.Requests), others)
	l.Occupants = slices.DeleteFunc(slices.Clone(l.Occupants), others)
	l.Terminating = slices.DeleteFunc(slices.Clone(l.Terminating), others)
	return l
}
