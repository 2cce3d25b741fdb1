package webhook

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// operation is one JSON patch operation (RFC 6902).
type operation struct {
	op, path string
	// value is nil for none.
	value any
}

// Paths we write to. Nothing else of a pod is ever touched.
const (
	pathAffinity       = "/spec/affinity"
	pathNodeAffinity   = pathAffinity + "/nodeAffinity"
	pathPreferredNodes = pathNodeAffinity + "/preferredDuringSchedulingIgnoredDuringExecution"
	pathPodAffinity    = pathAffinity + "/podAffinity"
	pathPreferredPods  = pathPodAffinity + "/preferredDuringSchedulingIgnoredDuringExecution"
	pathSpread         = "/spec/topologySpreadConstraints"
	pathAnnotations    = "/metadata/annotations"
	pathLabels         = "/metadata/labels"
)

// operations turns the parts into operations on the submitted pod.
func (p *parts) operations(s *submission) []operation {
	var b builder
	b.annotations(s, p.annotations)
	if !p.annotationsOnly {
		b.nodeTerms(s, p.terms)
		b.podAffinity(s, p.late)
		b.spread(s, p.neutral)
		b.labels(s, p.late)
	}
	return b.ops
}

// builder collects operations.
type builder struct {
	ops []operation
	// affinity is true once the pod has an affinity object, from itself or from
	// an operation.
	affinity bool
}

func (b *builder) add(path string, value any) {
	b.ops = append(b.ops, operation{op: "add", path: path, value: value})
}

// removeAt removes elements of a list, or the whole list when nothing would be
// left. It returns whether the list still has elements.
func (b *builder) removeAt(path string, indices []int, length int) bool {
	if length > 0 && len(indices) == length {
		b.ops = append(b.ops, operation{op: "remove", path: path})
		return false
	}
	for _, i := range slices.Backward(indices) {
		b.ops = append(b.ops, operation{op: "remove", path: path + "/" + strconv.Itoa(i)})
	}
	return length > 0
}

// ensureAffinity makes sure that the affinity object is there. Adding to a
// missing parent does not apply; adding over an explicit null does.
func (b *builder) ensureAffinity(s *submission) {
	if s.pod.Spec.Affinity == nil && !b.affinity {
		b.add(pathAffinity, struct{}{})
	}
	b.affinity = true
}

func (b *builder) nodeTerms(s *submission, wanted nodeTerms) {
	has := false
	exists := s.pod.Spec.Affinity != nil && s.pod.Spec.Affinity.NodeAffinity != nil
	if exists {
		has = b.removeAt(pathPreferredNodes, s.ours.terms, len(s.pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution))
	}
	if len(wanted) == 0 {
		return
	}
	b.ensureAffinity(s)
	switch {
	case !exists:
		b.add(pathNodeAffinity, nodeAffinity{wanted})
	case !has:
		b.add(pathPreferredNodes, wanted)
	default:
		for i := range wanted {
			b.add(pathPreferredNodes+"/-", nodeTerm(wanted[i]))
		}
	}
}

func (b *builder) podAffinity(s *submission, late *steering.Late) {
	has := false
	exists := s.pod.Spec.Affinity != nil && s.pod.Spec.Affinity.PodAffinity != nil
	if exists {
		has = b.removeAt(pathPreferredPods, s.ours.affinities, len(s.pod.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution))
	}
	if late == nil {
		return
	}
	b.ensureAffinity(s)
	wanted := []corev1.WeightedPodAffinityTerm{late.Term()}
	switch {
	case !exists:
		b.add(pathPodAffinity, corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: wanted})
	case !has:
		b.add(pathPreferredPods, wanted)
	default:
		b.add(pathPreferredPods+"/-", wanted[0])
	}
}

func (b *builder) spread(s *submission, neutral bool) {
	has := len(s.ours.constraints) > 0
	if has && !neutral {
		b.removeAt(pathSpread, s.ours.constraints, len(s.pod.Spec.TopologySpreadConstraints))
	}
	if neutral && !has {
		b.add(pathSpread, []corev1.TopologySpreadConstraint{steering.NeutralConstraint()})
	}
}

func (b *builder) annotations(s *submission, wanted map[string]string) {
	for _, key := range s.ours.annotations {
		if _, stays := wanted[key]; !stays {
			b.ops = append(b.ops, operation{op: "remove", path: pathAnnotations + "/" + escape(key)})
		}
	}
	if len(wanted) > 0 && s.pod.Annotations == nil {
		b.add(pathAnnotations, struct{}{})
	}
	// In a fixed order, so that the same decision gives the same patch.
	for _, key := range []string{config.AnnotationSteering, config.AnnotationTarget, config.AnnotationAdmission, config.AnnotationRanking} {
		if value, ok := wanted[key]; ok {
			b.add(pathAnnotations+"/"+escape(key), value)
		}
	}
}

func (b *builder) labels(s *submission, late *steering.Late) {
	if late == nil {
		for _, key := range s.ours.labels {
			b.ops = append(b.ops, operation{op: "remove", path: pathLabels + "/" + escape(key)})
		}
		return
	}
	if s.pod.Labels == nil {
		b.add(pathLabels, struct{}{})
	}
	b.add(pathLabels+"/"+escape(config.LabelLate), late.LabelValue)
}

// pointerToken writes a key as a JSON pointer token (RFC 6901).
var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")

func escape(key string) string { return pointerToken.Replace(key) }
