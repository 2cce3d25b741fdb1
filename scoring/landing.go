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

// track follows a pod from pending to bound. A pod that was bound when first seen (at
// the start, above all) does not count as landed. It returns where a steered pod landed
// if it did now. Call under lock.
func (ix *Index) track(r *podRecord, pod *reducedPod, now time.Time) (landed *Landed) {
	if pod.nodeName != "" {
		if r.waits() {
			landed = &Landed{
				Namespace: pod.namespace, Name: pod.name, Node: pod.nodeName,
				Target: pod.target, Where: pod.landing, Waited: now.Sub(r.pending.since),
			}
			ix.landings[landed.Where]++
		}
		ix.endPending(r)
		return landed
	}
	if r.pending == nil {
		r.pending = &pendingPod{since: ix.pendingSince(pod, now)}
	}
	ix.setWaiting(r, !pod.over && !pod.deleting && pod.steered())
	return nil
}

// waits tells whether the pod is steered and has no node yet.
func (r *podRecord) waits() bool { return r.pending != nil && r.pending.steered }

// endPending notes that a pod has a node, or is gone. Call under lock.
func (ix *Index) endPending(r *podRecord) {
	if r.pending != nil {
		ix.setWaiting(r, false)
		r.pending = nil
	}
}

// setWaiting keeps the number of waiting pods in step with those of pending ones. Call
// under lock.
func (ix *Index) setWaiting(r *podRecord, waiting bool) {
	if waiting && !r.pending.steered {
		ix.waiting++
	}
	if !waiting && r.pending.steered {
		ix.waiting--
	}
	r.pending.steered = waiting
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
