package index

import (
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Landed is a steered pod that got its node.
type Landed struct {
	// Namespace, Name and Node are those of the pod.
	Namespace, Name, Node string
	// Target is the node that it was expected on, empty for late steering.
	Target string
	Where  steering.Landing
	// Waited is the time since the pod was first seen.
	Waited time.Duration
}

// landings follows steered pods from pending to bound.
type landings struct {
	// waiting is how many steered pods are pending; counts says where the others went.
	waiting int
	counts  map[steering.Landing]int
}

// track follows a pod. One that was bound when first seen (at the start, above all) does
// not count as landed. It returns where a steered pod landed if it did now. since is when
// the pod began to wait if that was now.
func (l *landings) track(r *podRecord, pod *reduced.Pod, since, now time.Time) (landed *Landed) {
	if pod.NodeName != "" {
		if r.waits() {
			landed = &Landed{
				Namespace: pod.Namespace, Name: pod.Name, Node: pod.NodeName,
				Target: pod.Target, Where: pod.Landing, Waited: now.Sub(r.pending.since),
			}
			l.counts[landed.Where]++
		}
		l.endPending(r)
		return landed
	}
	if r.pending == nil {
		r.pending = &pendingPod{since: since}
	}
	l.setWaiting(r, !pod.Over && !pod.Deleting && pod.Steered())
	return nil
}

// endPending notes that a pod has a node, or is gone.
func (l *landings) endPending(r *podRecord) {
	if r.pending != nil {
		l.setWaiting(r, false)
		r.pending = nil
	}
}

// setWaiting keeps the number of waiting pods in step with those of pending ones.
func (l *landings) setWaiting(r *podRecord, waiting bool) {
	if waiting && !r.pending.steered {
		l.waiting++
	}
	if !waiting && r.pending.steered {
		l.waiting--
	}
	r.pending.steered = waiting
}
