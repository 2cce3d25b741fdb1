package steering

import (
	"github.com/gpu-binpacker/gpu-binpacker/config"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// IsOurAffinity tells whether a preferred pod-affinity term is the one of late
// steering.
func IsOurAffinity(term *corev1.WeightedPodAffinityTerm) bool {
	t := &term.PodAffinityTerm
	if t.TopologyKey != corev1.LabelHostname || t.LabelSelector == nil || len(t.LabelSelector.MatchExpressions) > 0 {
		return false
	}
	_, late := t.LabelSelector.MatchLabels[config.LabelLate]
	return late && len(t.LabelSelector.MatchLabels) == 1
}
