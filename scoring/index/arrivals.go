package index

import (
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
)

// noteFirst notes what the first sight of a pod tells: of the clocks, and that pods of its
// namespace do come.
func (ix *Index) noteFirst(pod *reduced.Pod, known bool, now time.Time) {
	if known || pod.Over || ix.unsteered.has(pod.UID) {
		return
	}
	ix.clock.note(time.Unix(pod.Created, 0), now, ix.Synced() && pod.NodeName == "")
	if pod.UsesGPUs(ix.cfg.Resources) {
		// One without GPUs shows nothing: a tenant without a quota for GPUs has those.
		ix.unseen.end(pod.Namespace)
	}
}

// pendingSince is when a pod first seen now began to wait: at its creation, but
// while we watch, now, since another machine's clock says little about the age of
// a pod that was created a moment ago.
func (ix *Index) pendingSince(pod *reduced.Pod, now time.Time) time.Time {
	if created := ix.clock.local(time.Unix(pod.Created, 0)); !ix.Synced() && created.Before(now) {
		return created
	}
	return now
}

// seePending notes a GPU pod that is seen for the first time, with a decision of this
// replica or of another. One seen late says nothing: our own reservation may have
// ended.
func (ix *Index) seePending(pod *reduced.Pod, own bool, now time.Time) {
	late := ix.clock.server(now).Sub(time.Unix(pod.Created, 0)) >= ix.cfg.InFlight.ReservationTTL.Duration
	if !ix.Synced() || late || !pod.UsesGPUs(ix.cfg.Resources) {
		return
	}
	if len(ix.reservations.byUID) >= burstDecisions {
		ix.replicas.noteBurst(own)
	}
	if !own {
		ix.replicas.giveUpOldest()
	}
}

// noteOutcome follows what a pod shows of its node, unless there is no such node: only at
// the start it may still come.
func (ix *Index) noteOutcome(pod *reduced.Pod, now time.Time) {
	if pod.Outcome == reduced.OutcomeUnknown {
		return
	}
	if s := ix.usage.of(pod.NodeName); s != nil {
		ix.backoffs.note(pod, time.Unix(s.Created, 0), now)
	} else if !ix.Synced() {
		ix.backoffs.note(pod, time.Time{}, now)
	}
}
