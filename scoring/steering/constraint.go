package steering

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// IsConstraint tells whether a spread constraint is our neutral one.
func IsConstraint(c *corev1.TopologySpreadConstraint) bool {
	return c.TopologyKey == corev1.LabelHostname &&
		c.WhenUnsatisfiable == corev1.ScheduleAnyway &&
		c.LabelSelector != nil && len(c.LabelSelector.MatchLabels) == 0 &&
		len(c.LabelSelector.MatchExpressions) == 1 &&
		c.LabelSelector.MatchExpressions[0].Key == config.LabelNone
}

// NeutralConstraint is the spread constraint that does nothing: it counts the
// pods with a label that no pod has. Its presence alone keeps the scheduler from
// applying its default constraints, which would spread replicas. The selector
// must not be nil: the API server warns users about that.
func NeutralConstraint() corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew:           math.MaxInt32,
		TopologyKey:       corev1.LabelHostname,
		WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key:      config.LabelNone,
			Operator: metav1.LabelSelectorOpIn,
			Values:   []string{"none"},
		}}},
	}
}

const pathSpread = "/spec/topologySpreadConstraints"

var constraintPart = part{
	find: func(pod *corev1.Pod) found { return indices(pod.Spec.TopologySpreadConstraints, IsConstraint) },
	strip: func(user *corev1.Pod, f found) {
		user.Spec.TopologySpreadConstraints = without(user.Spec.TopologySpreadConstraints, f)
	},
	operations: func(b *builder, f found, wanted *Parts) {
		has := len(f.at) > 0
		if has && !wanted.Neutral {
			b.removeAt(pathSpread, f.at, len(b.pod.Spec.TopologySpreadConstraints))
		}
		if wanted.Neutral && !has {
			b.add(pathSpread, []corev1.TopologySpreadConstraint{NeutralConstraint()})
		}
	},
}
