package scoring

import (
	"maps"
	"time"

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

// Landed is a steered pod that got its node.
type Landed struct {
	// Namespace, Name and Node are those of the pod.
	Namespace, Name, Node string
	// Target is the node that it was expected on, empty for late steering.
	Target string
	Where  Landing
	// Waited is the time since the pod was first seen.
	Waited time.Duration
}

// OnLanded sets what is called, outside of all locks, for every steered pod that
// is seen to be bound. Set it before the first event.
func (ix *Index) OnLanded(f func(Landed)) { ix.onLanded = f }

// Landings returns how many steered pods were seen to land where, since the
// start. Every replica sees all pods.
func (ix *Index) Landings() map[Landing]int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return maps.Clone(ix.landings)
}

// track follows a steered pod from pending to bound. A pod that was bound when
// first seen (at the start, above all) does not count. It returns where the pod
// landed if it did now. Call under lock.
func (ix *Index) track(r *podRecord, pod *reducedPod, now time.Time) (landed *Landed) {
	pending := pod.nodeName == "" && !pod.over && !pod.deleting
	if r.waiting && pod.nodeName != "" {
		landed = &Landed{
			Namespace: pod.namespace, Name: pod.name, Node: pod.nodeName,
			Target: pod.target, Where: pod.landing, Waited: now.Sub(r.since),
		}
		ix.landings[landed.Where]++
	}
	ix.setWaiting(r, pending && pod.steered())
	return landed
}

func (ix *Index) setWaiting(r *podRecord, waiting bool) {
	if waiting && !r.waiting {
		ix.waiting++
	}
	if !waiting && r.waiting {
		ix.waiting--
	}
	r.waiting = waiting
}

func landingOf(pod *corev1.Pod) Landing {
	switch node := pod.Spec.NodeName; {
	case pod.Annotations[config.AnnotationSteering] == config.SteeringLate:
		return LandedLate
	case pod.Annotations[config.AnnotationTarget] == node:
		return LandedTarget
	case listsNode(pod, node):
		return LandedListed
	default:
		return LandedOther
	}
}
