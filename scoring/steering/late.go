package steering

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Late is late steering: a soft pod affinity that the scheduler evaluates when
// room appears. A ranking made now would be stale by then.
type Late struct {
	// LabelValue is the value of the late label, for the pod and the term.
	LabelValue string
	// Scope says whether the term reaches into other namespaces.
	Scope config.LateScope
}

// Term returns the preferred pod-affinity term.
func (l *Late) Term() corev1.WeightedPodAffinityTerm {
	term := corev1.WeightedPodAffinityTerm{
		Weight: MaxWeight,
		PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{config.LabelLate: l.LabelValue}},
		},
	}
	if l.Scope == config.LateScopeCluster {
		term.PodAffinityTerm.NamespaceSelector = &metav1.LabelSelector{}
	}
	return term
}

// IsLateTerm tells whether a preferred pod-affinity term is the one of late
// steering.
func IsLateTerm(term *corev1.WeightedPodAffinityTerm) bool {
	t := &term.PodAffinityTerm
	if t.TopologyKey != corev1.LabelHostname || t.LabelSelector == nil || len(t.LabelSelector.MatchExpressions) > 0 {
		return false
	}
	_, late := t.LabelSelector.MatchLabels[config.LabelLate]
	return late && len(t.LabelSelector.MatchLabels) == 1
}

// preferredPodTerms are the pod's preferred pod-affinity terms, nil if there are none.
func preferredPodTerms(pod *corev1.Pod) []corev1.WeightedPodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
}

const (
	pathPodAffinity   = pathAffinity + "/podAffinity"
	pathPreferredPods = pathPodAffinity + "/preferredDuringSchedulingIgnoredDuringExecution"
)

var latePart = part{
	find: func(pod *corev1.Pod) found { return indices(preferredPodTerms(pod), IsLateTerm) },
	strip: func(user *corev1.Pod, f found) {
		affinity, pods := *user.Spec.Affinity, *user.Spec.Affinity.PodAffinity
		pods.PreferredDuringSchedulingIgnoredDuringExecution = without(preferredPodTerms(user), f)
		affinity.PodAffinity = &pods
		user.Spec.Affinity = &affinity
	},
	operations: func(b *builder, f found, wanted *Parts) {
		affinity, has := b.pod.Spec.Affinity, false
		exists := affinity != nil && affinity.PodAffinity != nil
		if exists {
			has = b.removeAt(pathPreferredPods, f.at, len(preferredPodTerms(b.pod)))
		}
		if wanted.Late == nil {
			return
		}
		b.ensureAffinity()
		terms := []corev1.WeightedPodAffinityTerm{wanted.Late.Term()}
		switch {
		case !exists:
			b.add(pathPodAffinity, corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms})
		case !has:
			b.add(pathPreferredPods, terms)
		default:
			b.add(pathPreferredPods+"/-", terms[0])
		}
	},
}
