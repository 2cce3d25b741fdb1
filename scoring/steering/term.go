package steering

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What we add to a pod is recognised by its shape, never by an annotation:
// copies of a pod (kubectl debug --copy-to, a restore) lose annotations and keep
// the spec.

// IsOurTerm tells whether a preferred term has exactly our form: one field
// requirement, metadata.name In one name, and nothing else.
func IsOurTerm(term *corev1.PreferredSchedulingTerm) bool {
	p := &term.Preference
	return len(p.MatchExpressions) == 0 && len(p.MatchFields) == 1 &&
		p.MatchFields[0].Key == metav1.ObjectNameField &&
		p.MatchFields[0].Operator == corev1.NodeSelectorOpIn &&
		len(p.MatchFields[0].Values) == 1
}

// listsNode tells whether one of our terms on the pod names the node.
func listsNode(pod *corev1.Pod, name string) bool {
	return slices.Contains(Listed(pod), name)
}

// listedNodes returns the nodes that our terms on the pod name, by falling
// weight.
func Listed(pod *corev1.Pod) []string {
	var ours []*corev1.PreferredSchedulingTerm
	terms := PreferredTerms(pod)
	for i := range terms {
		if IsOurTerm(&terms[i]) {
			ours = append(ours, &terms[i])
		}
	}
	slices.SortStableFunc(ours, func(a, b *corev1.PreferredSchedulingTerm) int { return cmp.Compare(b.Weight, a.Weight) })
	names := make([]string, len(ours))
	for i := range ours {
		names[i] = ours[i].Preference.MatchFields[0].Values[0]
	}
	return names
}

// PreferredTerms are the pod's preferred node-affinity terms, nil if there are none.
func PreferredTerms(pod *corev1.Pod) []corev1.PreferredSchedulingTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
}

// MaxWeight is the largest weight the API allows in a preferred term.
const MaxWeight = 100
