package nodes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// UserPreferences prepares the pod's own preferred node-affinity terms and
// returns their largest weight; nil and 0 when it has none. How many there may be is
// bounded by CountConstraints.
func UserPreferences(pod *corev1.Pod) (*nodeaffinity.PreferredSchedulingTerms, int64, steering.Reason) {
	terms := steering.PreferredTerms(pod)
	if len(terms) == 0 {
		return nil, 0, steering.ReasonNone
	}
	prepared, err := nodeaffinity.NewPreferredSchedulingTerms(terms)
	if err != nil {
		return nil, 0, steering.ReasonInvalidAffinity
	}
	var heaviest int64
	for i := range terms {
		// The API server comes after us: it refuses weights outside 1 to 100, and the
		// arithmetic of ours relies on that.
		if w := terms[i].Weight; w < 1 || w > steering.MaxWeight {
			return nil, 0, steering.ReasonInvalidAffinity
		}
		heaviest = max(heaviest, int64(terms[i].Weight))
	}
	return prepared, heaviest, steering.ReasonNone
}
