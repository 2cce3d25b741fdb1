package webhook

import (
	"github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Limits of a pod that we touch.
const (
	// maxPodBytes leaves a third of the 1.5 MiB that etcd takes in one request
	// (--max-request-bytes) to what we and others add.
	maxPodBytes = 1 << 20
	// maxOwnParts is several times what we ever add; removing many more takes long,
	// here and in the API server.
	maxOwnParts = 500
)

// submission is the pod of a request.
type submission struct {
	// wire is the pod as received; the patch applies to it.
	wire wirePod
	// pod is wire, decoded.
	pod *corev1.Pod
	// user is pod without the parts we added earlier: on a reinvocation, or on a
	// copy of a pod that was steered.
	user *corev1.Pod
	// ours says which those parts are.
	ours ownParts
}

// ownParts are the parts of a pod that have the shape of ours.
type ownParts struct {
	// terms, constraints and affinities are indices into the preferred node
	// terms, the spread constraints and the preferred pod-affinity terms.
	terms, constraints, affinities []int
	// annotations and labels are keys.
	annotations, labels []string
}

func (o *ownParts) any() bool {
	return len(o.terms)+len(o.constraints)+len(o.affinities)+len(o.annotations)+len(o.labels) > 0
}

// decode reads the pod of a request, with the API server's own rules: names are
// case-sensitive, unknown fields are ignored. A name that is there twice, which no
// API server sends, is an error: readers differ in what they make of it.
func decode(req admission.Request) (*submission, steering.Reason) {
	if len(req.Object.Raw) > maxPodBytes {
		return nil, steering.ReasonTooLarge
	}
	s := &submission{}
	err := json.Unmarshal(req.Object.Raw, &s.wire, tolerant)
	if err == nil {
		s.pod, err = s.wire.pod()
	}
	if err != nil {
		return nil, ReasonUndecodable
	}
	s.user, s.ours = separate(s.pod)
	if len(s.ours.terms)+len(s.ours.constraints)+len(s.ours.affinities) > maxOwnParts {
		return nil, steering.ReasonTooLarge
	}
	return s, steering.ReasonNone
}

// separate returns the pod without our parts, and which they are. The pod itself
// is not changed; what stays is shared.
func separate(pod *corev1.Pod) (*corev1.Pod, ownParts) {
	ours := ownPartsOf(pod)
	if !ours.any() {
		return pod, ours
	}
	user := *pod
	user.Spec.TopologySpreadConstraints = without(pod.Spec.TopologySpreadConstraints, ours.constraints)
	if pod.Spec.Affinity == nil {
		return &user, ours
	}
	affinity := *pod.Spec.Affinity
	if affinity.NodeAffinity != nil {
		nodes := *affinity.NodeAffinity
		nodes.PreferredDuringSchedulingIgnoredDuringExecution = without(steering.PreferredTerms(pod), ours.terms)
		affinity.NodeAffinity = &nodes
	}
	if affinity.PodAffinity != nil {
		pods := *affinity.PodAffinity
		pods.PreferredDuringSchedulingIgnoredDuringExecution = without(preferredPodTerms(pod), ours.affinities)
		affinity.PodAffinity = &pods
	}
	user.Spec.Affinity = &affinity
	return &user, ours
}

func ownPartsOf(pod *corev1.Pod) ownParts {
	ours := ownParts{
		terms:       indices(steering.PreferredTerms(pod), steering.IsOurTerm),
		constraints: indices(pod.Spec.TopologySpreadConstraints, steering.IsOurConstraint),
		affinities:  indices(preferredPodTerms(pod), steering.IsOurAffinity),
	}
	for _, key := range []string{config.AnnotationSteering, config.AnnotationTarget, config.AnnotationAdmission, config.AnnotationRanking} {
		if _, ok := pod.Annotations[key]; ok {
			ours.annotations = append(ours.annotations, key)
		}
	}
	if _, ok := pod.Labels[config.LabelLate]; ok {
		ours.labels = append(ours.labels, config.LabelLate)
	}
	return ours
}

func preferredPodTerms(pod *corev1.Pod) []corev1.WeightedPodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
}

// indices returns those of the elements that are ours, rising.
func indices[T any](all []T, isOurs func(*T) bool) (ours []int) {
	for i := range all {
		if isOurs(&all[i]) {
			ours = append(ours, i)
		}
	}
	return ours
}

// without returns the elements but those with the indices, which rise.
func without[T any](all []T, indices []int) (rest []T) {
	for i := range all {
		if len(indices) > 0 && indices[0] == i {
			indices = indices[1:]
		} else {
			rest = append(rest, all[i])
		}
	}
	return rest
}
