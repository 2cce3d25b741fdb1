package steering

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Landing says where the scheduler put a steered pod.
type Landing string

// Landings.
const (
	// LandedTarget: on the node that the pod was expected on.
	LandedTarget Landing = "target"
	// LandedListed: on another node that its terms list.
	LandedListed Landing = "listed"
	// LandedOther: on a node that its terms do not list.
	LandedOther Landing = "other"
	// LandedLate: the pod had late steering, which names no node.
	LandedLate Landing = "late"
)

// LandingOf says where a steered pod is that was bound.
func LandingOf(pod *corev1.Pod) Landing {
	switch node := pod.Spec.NodeName; {
	case pod.Annotations[config.AnnotationSteering] == config.SteeringLate:
		return LandedLate
	case pod.Annotations[config.AnnotationTarget] == node:
		return LandedTarget
	case slices.Contains(Listed(pod), node):
		return LandedListed
	default:
		return LandedOther
	}
}
