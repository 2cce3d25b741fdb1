package scoring

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Request is a pod to decide about.
type Request struct {
	// Pod is the pod without the parts we added earlier. It is not changed.
	Pod *corev1.Pod
	// Namespace is the namespace of the request; the pod may state none.
	Namespace string
	// UID identifies the admission: that of the first request for this pod.
	UID types.UID
	// DryRun requests decide and reserve nothing.
	DryRun bool
}

// Decision is what to do with a pod. It holds names and numbers only, never
// parts of the pod.
type Decision struct {
	// Reason says why there is no ranking; ReasonNone when there is one.
	Reason Reason
	// Ranking lists the nodes that get a term, best first, with falling weights;
	// the last Tail of them share one weight.
	Ranking []RankedNode
	// Tail is how many nodes are listed only so that the part of a large cluster
	// that the scheduler examines holds one.
	Tail int
	// Feasible is how many nodes can take the pod.
	Feasible int
	// Late is set when the pod is to get late steering.
	Late *Late
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
	cfg   config.Configuration
	index *Index
	order compare
}

// NewScorer returns a scorer for a valid configuration.
func NewScorer(cfg config.Configuration, index *Index) *Scorer {
	return &Scorer{cfg: cfg, index: index, order: newCompare(cfg.Ranking)}
}

// optimisticTries is how often a decision is made without the lock before it is
// made under it. Another decision has to take the last room of the same node in
// the few microseconds between snapshot and reservation for a try to fail, so a
// few suffice.
const optimisticTries = 4

// Decide ranks the nodes for a pod and reserves its request on the first one,
// unless the request is a dry run. It never fails: a pod it can or should do
// nothing for gets a decision with a reason.
func (s *Scorer) Decide(r Request) Decision {
	demand, reason := NewDemand(r.Pod, s.cfg.Resources)
	if reason == ReasonNone && !s.index.Synced() {
		reason = ReasonNotSynced
	}
	if reason != ReasonNone {
		return Decision{Reason: reason}
	}
	reserves := !r.DryRun && s.cfg.Mode == config.ModeSteer
	for range optimisticTries {
		d := s.decideOn(s.index.view(r.UID), r.Pod, &demand)
		if !reserves || d.Target() == "" || s.index.tryReserve(r.UID, d.Target(), &demand) {
			return d
		}
	}
	return s.decideLocked(r, &demand)
}

// decideLocked decides while nobody else can reserve.
func (s *Scorer) decideLocked(r Request, demand *Demand) Decision {
	ix := s.index
	ix.mu.Lock()
	defer ix.mu.Unlock()
	now := ix.now()
	d := s.decideOn(ix.viewLocked(r.UID, now), r.Pod, demand)
	if d.Target() != "" {
		ix.reserve(r.UID, d.Target(), demand, now)
	}
	return d
}

// view is what one decision looks at: a snapshot, and the pod's own reservation
// if it has one, which does not count against it.
type view struct {
	*Snapshot
	own *charge
}

func (ix *Index) view(uid types.UID) view {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.viewLocked(uid, ix.now())
}

func (ix *Index) viewLocked(uid types.UID, now time.Time) view {
	v := view{Snapshot: ix.current(now)}
	if r, ok := ix.reservations[uid]; ok {
		v.own = &r.charge
	}
	return v
}

func (ix *Index) tryReserve(uid types.UID, target string, d *Demand) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.reserve(uid, target, d, ix.now())
}

// state returns the i-th node's state as the pod sees it.
func (v *view) state(i int) *nodeState {
	if s := v.nodes[i]; v.own == nil || s.object.Name != v.own.node {
		return s
	}
	return v.nodes[i].without(*v.own)
}

// decideOn is the decision itself, on an immutable view.
func (s *Scorer) decideOn(v view, pod *corev1.Pod, demand *Demand) Decision {
	found, reason := s.feasible(v, pod, demand)
	switch {
	case reason == ReasonNothingFits:
		return Decision{Reason: reason, Late: s.late(pod, demand), NeutralizeSpreading: s.mayNeutralize(found.hostnames)}
	case reason != ReasonNone:
		return Decision{Reason: reason}
	}
	ranked := s.rank(found, len(v.nodes))
	weighed := s.weigh(v.Snapshot, pod, demand, ranked, found)
	if len(weighed.weights) == 0 {
		return Decision{Reason: ReasonUserPreference, Feasible: len(found.candidates)}
	}
	d := Decision{
		Ranking:             make([]RankedNode, len(weighed.weights)),
		Tail:                weighed.tail,
		Feasible:            len(found.candidates),
		NeutralizeSpreading: s.mayNeutralize(found.hostnames),
		UnlistedMayWin:      weighed.unlistedMayWin,
	}
	for i, w := range weighed.weights {
		c := &ranked[weighed.listed[i]]
		d.Ranking[i] = RankedNode{Name: c.object.Name, Score: c.score, FreeAfter: c.freeAfter, Weight: int32(w)}
	}
	if s.cfg.LateSteering.Mode == config.LateAlways {
		d.Late = s.late(pod, demand)
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
