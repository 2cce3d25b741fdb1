package scoring

import (
	"context"
	"slices"
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
	Reason Reason
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
	cfg     config.Configuration
	index   *Index
	version *SchedulerVersion
}

// NewScorer returns a scorer for a valid configuration.
func NewScorer(cfg config.Configuration, index *Index) *Scorer {
	return &Scorer{cfg: cfg, index: index, version: newSchedulerVersion(cfg.Scheduler, index.now)}
}

// Version is by which versions of the scheduler the scorer decides. Whoever knows the
// API server's tells it.
func (s *Scorer) Version() *SchedulerVersion { return s.version }

// optimisticTries is how often a decision is made without the lock before it is
// made under it. Another decision has to take the last room of the same node in
// the few microseconds between view and reservation for a try to fail, so a
// few suffice.
const optimisticTries = 4

// Decide ranks the nodes for a pod and reserves its request on the first one,
// unless the request is a dry run. It never fails: a pod it can or should do
// nothing for gets a decision with a reason. When the context ends, so does the
// decision, with ReasonTimeout and no reservation.
func (s *Scorer) Decide(ctx context.Context, r Request) Decision {
	r.Pod = s.version.stored(r.Pod)
	demand, reason := NewDemand(r.Pod, s.cfg.Resources)
	if reason == ReasonNone && !s.index.Synced() {
		reason = ReasonNotSynced
	}
	if reason == ReasonNone && tooManyConstraints(r.Pod) {
		reason = ReasonTooLarge
	}
	if reason != ReasonNone {
		return Decision{Reason: reason, UID: r.UID}
	}
	giveUp := len(PreferredTerms(r.Pod)) > 0
	for range optimisticTries {
		v := s.index.view(r, &demand, giveUp)
		d := s.decideOn(ctx, v, r.Pod, &demand)
		if d.Reason == ReasonNothingFits && v.held && !giveUp {
			giveUp = true
			continue
		}
		if !s.reserves(r) || s.index.tryReserve(ctx, &d, r, &demand) {
			return d
		}
	}
	return s.decideLocked(ctx, r, &demand)
}

func (s *Scorer) reserves(r Request) bool { return !r.DryRun && s.cfg.Mode == config.ModeEnforce }

// decideLocked decides while nobody else can reserve.
func (s *Scorer) decideLocked(ctx context.Context, r Request, demand *Demand) Decision {
	ix := s.index
	ix.mu.Lock()
	defer ix.mu.Unlock()
	d := s.decideOn(ctx, ix.viewLocked(r, demand, ix.now(), true), r.Pod, demand)
	ix.reserveLocked(ctx, &d, r, demand)
	return d
}

// view is what one decision looks at. It stays as it is whatever happens next, except
// for latest.
type view struct {
	uid types.UID
	now time.Time
	// pool are the nodes that the pod may go to, none for a pod that is pinned to
	// one; key is their order.
	pool   poolView
	key    keyFunc
	latest latestStates
	// own is the pod's own reservation, if it has one, which does not count against
	// it; ownState is its node without it, nil if the pod may not go there.
	own      *charge
	ownState *nodeState
	// nodes is how many there are, candidates or not.
	nodes  int
	images imageTable
	// nodeOrder is the scheduler's, as far as it can be told.
	nodeOrder *nodeOrder
	// backoff: node -> until when it is no candidate.
	backoff map[string]time.Time
	// held: room is held for what other replicas may have decided.
	held bool
	// unknownResource: nodes offer the pod's GPUs, but none offers some other
	// extended resource that it asks for as well.
	unknownResource bool
}

// view returns what a decision about the pod looks at. giveUp ends the holding of
// room where the pod could go.
func (ix *Index) view(r Request, demand *Demand, giveUp bool) view {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.viewLocked(r, demand, ix.now(), giveUp)
}

func (ix *Index) viewLocked(r Request, demand *Demand, now time.Time, giveUp bool) view {
	ix.expire(now)
	if giveUp {
		ix.giveUpFor(r.Pod, demand)
	}
	ix.renewKey(now)
	if ix.nodeOrder == nil {
		ix.nodeOrder = &nodeOrder{nodes: slices.Clone(ix.order)}
	}
	ix.imagesShared = true
	v := view{
		uid: r.UID, now: now, key: ix.key, latest: ix.latest, nodes: len(ix.order), images: ix.images,
		nodeOrder: ix.nodeOrder, backoff: ix.backoffs.until, held: len(ix.peers.held) > 0,
		unknownResource: ix.asksForUnknown(demand),
	}
	if ix.isFirst(r) {
		v.uid = r.FirstUID
	}
	if own, ok := ix.reservations[v.uid]; ok && own.namespace == r.Namespace {
		v.own = &own.charge
	}
	if !isPinned(r.Pod) { // each such pod would be a kind of its own
		ix.addPool(&v, r.Pod, demand)
	}
	return v
}

// addPool gives a view its pool. Call under lock.
func (ix *Index) addPool(v *view, pod *corev1.Pod, demand *Demand) {
	pool := ix.poolFor(pod, demand)
	v.pool = pool.view()
	if v.own == nil {
		return
	}
	if s := ix.states[v.own.node]; s != nil && s.node != nil && pool.member(s.node)&eligible != 0 {
		v.ownState = s.without(*v.own)
	}
}

// isFirst tells whether the pod is the one of its first UID, and not a copy. The
// API server calls a webhook at most twice for a pod, so a third call within the
// life of a reservation comes from a copy, of a template that carries our
// annotations, say; the copies must not all share one reservation.
func (ix *Index) isFirst(r Request) bool {
	if r.FirstUID == "" || len(r.FirstUID) > maxUIDLength {
		return false
	}
	own, ok := ix.reservations[r.FirstUID]
	return !ok || own.namespace == r.Namespace && own.calls < maxCalls
}

// maxCalls is how often the API server calls a webhook for one pod: once, and
// once more if a later webhook has changed the pod (reinvocationPolicy IfNeeded).
const maxCalls = 2

// maxUIDLength is the length of a UUID in text, which is what the API server
// sends; anything longer was not written by us.
const maxUIDLength = 36

func (ix *Index) tryReserve(ctx context.Context, d *Decision, r Request, demand *Demand) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.reserveLocked(ctx, d, r, demand)
}

// reserveLocked makes the reservations say what the decision says. It returns
// false when the target was taken meanwhile. Call under lock.
func (ix *Index) reserveLocked(ctx context.Context, d *Decision, r Request, demand *Demand) bool {
	if ctx.Err() != nil {
		*d = Decision{Reason: ReasonTimeout, UID: d.UID} // the pod was admitted without us
	}
	if d.Target() == "" {
		ix.release(d.UID, r.Namespace)
		return true
	}
	return ix.reserve(d, r, demand, ix.now())
}

// inBackoff tells whether a node is no candidate for now.
func (v *view) inBackoff(name string) bool {
	until, ok := v.backoff[name]
	return ok && v.now.Before(until)
}

// decideOn is the decision itself, on a view.
func (s *Scorer) decideOn(ctx context.Context, v view, pod *corev1.Pod, demand *Demand) Decision {
	found, reason := s.feasible(ctx, v, pod, demand, bestOnly)
	defer found.release()
	d := Decision{Reason: reason, UID: v.uid, Feasible: len(found.candidates), NeutralizeSpreading: s.mayNeutralize(found.hostnames)}
	switch {
	case reason == ReasonNothingFits:
		d.Late = s.late(pod, demand)
		return d
	case reason != ReasonNone:
		return d
	}
	ranked := s.rank(found, v)
	weighed := s.weigh(&v, pod, demand, ranked, found)
	if len(weighed.weights) == 0 {
		d.Reason = ReasonUserPreference
		return d
	}
	d.Tail, d.UnlistedMayWin = weighed.tail, weighed.unlistedMayWin
	d.Ranking = make([]RankedNode, len(weighed.weights))
	for i, w := range weighed.weights {
		c := &ranked[weighed.listed[i]]
		d.Ranking[i] = RankedNode{Name: c.name, Score: c.score, FreeAfter: c.freeAfter, Weight: int32(w)}
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
