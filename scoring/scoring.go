package scoring

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Request is a pod to decide about.
type Request struct {
	// Pod is the pod without the parts we added earlier. It is not changed.
	Pod *corev1.Pod
	// Namespace is the namespace of the request; the pod may state none.
	Namespace string
	// UID identifies this admission request.
	UID types.UID
	// FirstUID is the UID that an earlier answer of ours put on the pod, if any:
	// on a reinvocation, or on a pod that this one is a copy of.
	FirstUID types.UID
	// DryRun requests decide and reserve nothing.
	DryRun bool
}

// Decision is what to do with a pod. It holds names and numbers only, never
// parts of the pod.
type Decision struct {
	// Reason says why there is no ranking; ReasonNone when there is one.
	Reason steering.Reason
	// UID is the one to put on the pod: of the first request of this admission.
	UID types.UID
	// Ranking lists the nodes that get a term, best first, with falling weights;
	// the last Tail of them share one weight.
	Ranking []RankedNode
	// Tail is how many nodes are listed without an order of their own: so that the
	// part of a large cluster that the scheduler examines holds one, or because the
	// weights do not suffice for an order of all.
	Tail int
	// Feasible is how many nodes can take the pod, at least: the search ends when it
	// has found the best.
	Feasible int
	// Late is set when the pod is to get late steering.
	Late *steering.Late
	// NeutralizeSpreading says whether the neutral constraint may be added.
	NeutralizeSpreading bool
	// UnlistedMayWin says that the scheduler may prefer a feasible node that is
	// not listed, because of what its other plugins give.
	UnlistedMayWin bool
}

// RankedNode is one node of a ranking.
type RankedNode struct {
	// Name is the node's metadata.name.
	Name string
	// Score is 100*allocated/allocatable before placement.
	Score int64
	// FreeAfter is how many GPUs are free after placement.
	FreeAfter int64
	// Weight is the weight of the node's term, 1 to 100.
	Weight int32
}

// Target is the node the pod is expected on, empty when there is no ranking.
func (d *Decision) Target() string {
	if len(d.Ranking) == 0 {
		return ""
	}
	return d.Ranking[0].Name
}

// Scorer decides about pods against an index.
type Scorer struct {
	cfg     config.Configuration
	index   *index.Index
	version *scheduler.Version
}

// NewScorer returns a scorer for a valid configuration.
func NewScorer(cfg config.Configuration, ix *index.Index) *Scorer {
	return &Scorer{cfg: cfg, index: ix, version: scheduler.NewVersion(cfg.Scheduler, ix.Now)}
}

// Version is by which versions of the scheduler the scorer decides. Whoever knows the
// API server's tells it.
func (s *Scorer) Version() *scheduler.Version { return s.version }

// optimisticTries is how often a decision is made without the lock before it is
// made under it. Another decision has to take the last room of the same node in
// the few microseconds between view and reservation for a try to fail, so a
// few suffice.
const optimisticTries = 4

// Decide ranks the nodes for a pod and reserves its request on the first one,
// unless the request is a dry run. It never fails: a pod it can or should do
// nothing for gets a decision with a reason. When the context ends, so does the
// decision, with ReasonTimeout and no reservation. It may be called in parallel.
func (s *Scorer) Decide(ctx context.Context, r Request) Decision {
	q, reason := s.query(r)
	if reason != steering.ReasonNone {
		return Decision{Reason: reason, UID: r.UID}
	}
	if r.DryRun {
		d, _ := s.look(ctx, q)
		return d
	}
	for range optimisticTries {
		v, err := s.index.View(ctx, q)
		if err != nil {
			return tooLate(q)
		}
		d := s.decideOn(ctx, &v, q)
		if d.Reason == steering.ReasonNothingFits && v.Held && !q.GiveUp {
			q.GiveUp = true // the last room is not held for others
			continue
		}
		if s.reserve(ctx, q, &d) {
			return d
		}
	}
	return s.decideLocked(ctx, q)
}

// query returns what to look at the index for, or why there is nothing to look for.
func (s *Scorer) query(r Request) (*index.Query, steering.Reason) {
	pod := s.version.Stored(r.Pod)
	asked, reason := demand.Of(pod, s.cfg.Resources)
	switch {
	case reason != steering.ReasonNone:
		return nil, reason
	case !s.index.Synced():
		return nil, steering.ReasonNotSynced
	case nodes.CountConstraints(pod).TooLarge(s.index.NodeCount):
		return nil, steering.ReasonConstraintsTooLarge
	}
	return &index.Query{
		Pod: pod, Demand: &asked, Namespace: r.Namespace, UID: r.UID, FirstUID: r.FirstUID,
		GiveUp: len(steering.PreferredTerms(pod)) > 0,
	}, steering.ReasonNone
}

// look decides without changing anything, and returns the view that the decision is about.
func (s *Scorer) look(ctx context.Context, q *index.Query) (Decision, index.View) {
	v, err := s.index.Look(ctx, q)
	if err != nil {
		return tooLate(q), v
	}
	d := s.decideOn(ctx, &v, q)
	if d.Reason == steering.ReasonNothingFits && v.Held && !q.GiveUp {
		q.GiveUp = true // the last room is not held for others
		return s.look(ctx, q)
	}
	return d, v
}

// tooLate is the decision about a pod that got no view of the index in time.
func tooLate(q *index.Query) Decision { return Decision{Reason: steering.ReasonTimeout, UID: q.UID} }

// reserve reserves what a decision says, if decisions are to be carried out. It returns
// false when the target was taken meanwhile.
func (s *Scorer) reserve(ctx context.Context, q *index.Query, d *Decision) bool {
	if s.cfg.Mode != config.ModeEnforce {
		return true
	}
	reserved, err := s.index.Reserve(ctx, reservationOf(q, d))
	if err != nil {
		*d = Decision{Reason: steering.ReasonTimeout, UID: d.UID} // the pod was admitted without us
	}
	return reserved || err != nil
}

// decideLocked decides while nobody else can reserve.
func (s *Scorer) decideLocked(ctx context.Context, q *index.Query) (d Decision) {
	q.GiveUp = true
	err := s.index.ReserveLocked(ctx, q, func(v *index.View) *index.Reservation {
		d = s.decideOn(ctx, v, q)
		return reservationOf(q, &d)
	})
	if err != nil {
		return Decision{Reason: steering.ReasonTimeout, UID: cmp.Or(d.UID, q.UID)}
	}
	return d
}

// reservationOf is what a decision wants to hold.
func reservationOf(q *index.Query, d *Decision) *index.Reservation {
	r := &index.Reservation{UID: d.UID, Request: q.UID, Namespace: q.Namespace, Demand: q.Demand, Listed: make([]string, len(d.Ranking))}
	for i := range d.Ranking {
		r.Listed[i] = d.Ranking[i].Name
	}
	return r
}

// decideOn is the decision itself, on a view.
func (s *Scorer) decideOn(ctx context.Context, v *index.View, q *index.Query) Decision {
	if nodes.IsPinned(q.Pod) {
		return Decision{Reason: steering.ReasonPinned, UID: v.UID}
	}
	found, reason := s.feasible(ctx, v, q, bestOnly)
	defer found.release()
	d := Decision{Reason: reason, UID: v.UID, Feasible: len(found.candidates), NeutralizeSpreading: s.mayNeutralize(found.hostnames)}
	switch {
	case reason == steering.ReasonNothingFits:
		d.Late = s.late(q.Pod, q.Demand)
		return d
	case reason != steering.ReasonNone:
		return d
	}
	ranked := s.rank(found, v)
	weighed, unlistedMayWin := s.weigh(v, q, ranked, found)
	if len(weighed.Weights) == 0 {
		d.Reason = steering.ReasonUserPreference
		return d
	}
	d.Tail, d.UnlistedMayWin = weighed.Tail, unlistedMayWin
	d.Ranking = make([]RankedNode, len(weighed.Weights))
	for i, w := range weighed.Weights {
		c := &ranked[weighed.Listed[i]]
		d.Ranking[i] = RankedNode{Name: c.Name, Score: c.score, FreeAfter: c.freeAfter, Weight: int32(w)}
	}
	if s.cfg.LateSteering.Mode == config.LateAlways {
		d.Late = s.late(q.Pod, q.Demand)
	}
	return d
}

// mayNeutralize tells whether the neutral spread constraint may be added: with
// an explicit constraint, nodes without the hostname label would score zero, and
// an administrator's own default constraints would be switched off.
func (s *Scorer) mayNeutralize(hostnames bool) bool {
	return s.cfg.Spreading.Default == config.SpreadingNeutralize &&
		s.cfg.Scheduler.DefaultConstraints == config.ConstraintsSystem && hostnames
}
