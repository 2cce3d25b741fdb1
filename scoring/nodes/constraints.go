package nodes

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConstraintsOf returns a pod that has only what its pool's filter looks at, so
// that the pool does not keep the rest of it.
func ConstraintsOf(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{Spec: corev1.PodSpec{
		NodeSelector: maps.Clone(pod.Spec.NodeSelector),
		Tolerations:  slices.Clone(pod.Spec.Tolerations),
	}}
	if required := requiredTerms(pod); required != nil {
		out.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: required.DeepCopy(),
		}}
	}
	return out
}

func requiredTerms(pod *corev1.Pod) *corev1.NodeSelector {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// Signature is a text that two pods have in common only if every node is the same
// to their node selectors, required affinities and tolerations. Each part is
// quoted or counted, so that no two differ only in where a part ends.
func Signature(pod *corev1.Pod) string {
	b := make([]byte, 0, 256)
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		b = appendTexts(append(b, 's'), key, pod.Spec.NodeSelector[key])
	}
	if required := requiredTerms(pod); required != nil {
		b = append(b, 'r')
		for i := range required.NodeSelectorTerms {
			b = appendRequirements(append(b, 't'), required.NodeSelectorTerms[i].MatchExpressions)
			b = appendRequirements(append(b, 'f'), required.NodeSelectorTerms[i].MatchFields)
		}
	}
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		// How long a taint is tolerated makes no difference to placement.
		b = appendTexts(append(b, 'o'), t.Key, string(t.Operator), t.Value, string(t.Effect))
	}
	return string(b)
}

func appendRequirements(b []byte, requirements []corev1.NodeSelectorRequirement) []byte {
	for i := range requirements {
		r := &requirements[i]
		b = appendTexts(append(b, 'e'), r.Key, string(r.Operator))
		b = appendTexts(b, r.Values...)
	}
	return b
}

// appendTexts appends the number of texts, and each with its length before it.
func appendTexts(b []byte, texts ...string) []byte {
	b = append(strconv.AppendInt(b, int64(len(texts)), 10), ':')
	for _, t := range texts {
		b = append(strconv.AppendInt(b, int64(len(t)), 10), ':')
		b = append(b, t...)
	}
	return b
}

// IsPinned tells whether the pod can only ever go to one node by name.
func IsPinned(pod *corev1.Pod) bool {
	if pod.Spec.NodeSelector[corev1.LabelHostname] != "" {
		return true
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return false
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return false
	}
	node := ""
	for i := range required.NodeSelectorTerms {
		name := namedNode(&required.NodeSelectorTerms[i])
		if name == "" || node != "" && name != node {
			return false
		}
		node = name
	}
	return node != ""
}

// namedNode returns the one node a term names, empty when it does not.
func namedNode(term *corev1.NodeSelectorTerm) string {
	for _, r := range term.MatchFields {
		if r.Key == metav1.ObjectNameField && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	for _, r := range term.MatchExpressions {
		if r.Key == corev1.LabelHostname && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}
