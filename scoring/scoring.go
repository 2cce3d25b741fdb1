package scoring

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

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
	// Ranking lists the nodes that get a term, best first, with falling weights.
	Ranking []RankedNode
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
	ranked := s.rank(found)
	weights, unlistedMayWin := s.weigh(v, pod, demand, ranked, found)
	if len(weights) == 0 {
		return Decision{Reason: ReasonUserPreference, Feasible: len(found.candidates)}
	}
	d := Decision{
		Ranking:             make([]RankedNode, len(weights)),
		Feasible:            len(found.candidates),
		NeutralizeSpreading: s.mayNeutralize(found.hostnames),
		UnlistedMayWin:      unlistedMayWin,
	}
	for i, w := range weights {
		c := &ranked[i]
		d.Ranking[i] = RankedNode{Name: c.object.Name, Score: c.score, FreeAfter: c.freeAfter, Weight: int32(w)}
	}
	if s.cfg.LateSteering.Mode == config.LateAlways {
		d.Late = s.late(pod, demand)
	}
	return d
}

// found is what filtering the nodes found.
type found struct {
	candidates []candidate
	// hostnames: every candidate carries the hostname label.
	hostnames bool
	// userMax is the heaviest of the user's own preferred weights, 0 for none.
	userMax int64
	// softTaints is the most PreferNoSchedule taints on a candidate.
	softTaints int64
}

// feasible returns the nodes that can take the pod.
func (s *Scorer) feasible(v view, pod *corev1.Pod, demand *Demand) (found, Reason) {
	filter := newPodFilter(pod, demand)
	user, userMax, err := userPreferences(pod)
	if err != nil {
		return found{}, ReasonInvalidAffinity
	}
	f := found{hostnames: true, userMax: userMax}
	matching := 0
	for i := range v.nodes {
		state := v.state(i)
		reason, err := filter.check(state)
		if err != nil {
			return found{}, ReasonInvalidAffinity
		}
		if filter.constrained && matching < 2 && reason != NodeNoResource {
			if ok, _ := filter.matches(state); ok {
				matching++
			}
		}
		if reason != NodeFeasible {
			continue
		}
		c := newCandidate(state, &filter, user, v.perGPU)
		f.candidates = append(f.candidates, c)
		f.hostnames = f.hostnames && state.hasHostname()
		f.softTaints = max(f.softTaints, c.softTaints)
	}
	switch {
	case isPinned(pod) || filter.constrained && matching == 1 && len(f.candidates) == 1:
		return f, ReasonPinned
	case len(f.candidates) == 0:
		return f, ReasonNothingFits
	}
	return f, ReasonNone
}

// userPreferences prepares the pod's own preferred node-affinity terms and
// returns their largest weight; nil and 0 when it has none.
func userPreferences(pod *corev1.Pod) (*nodeaffinity.PreferredSchedulingTerms, int64, error) {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil, 0, nil
	}
	terms := pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if len(terms) == 0 {
		return nil, 0, nil
	}
	prepared, err := nodeaffinity.NewPreferredSchedulingTerms(terms)
	if err != nil {
		return nil, 0, err
	}
	var heaviest int64
	for i := range terms {
		heaviest = max(heaviest, int64(terms[i].Weight))
	}
	return prepared, heaviest, nil
}

// rank returns the best candidates in order, as many as there may be terms. If
// the user has preferences, only the best class of nodes by them is listed.
func (s *Scorer) rank(f found) []candidate {
	b := best{n: s.cfg.Weights.MaxTerms, order: s.order}
	for i := range f.candidates {
		b.add(&f.candidates[i])
	}
	if f.userMax > 0 {
		for i := range b.top {
			if b.top[i].userScore != b.top[0].userScore || b.top[i].softTaints != b.top[0].softTaints {
				return b.top[:i]
			}
		}
	}
	return b.top
}

// weigh returns the weights of the ranked nodes, and whether an unlisted one may
// still win.
func (s *Scorer) weigh(v view, pod *corev1.Pod, demand *Demand, ranked []candidate, f found) ([]int64, bool) {
	m := newModel(&s.cfg.Scheduler, pod, demand, v.Snapshot)
	m.maxSoftTaints = f.softTaints
	points := make([]pointRange, len(ranked))
	for i := range ranked {
		points[i] = m.pointsWhileFilling(&ranked[i])
	}
	shared, first := ranked[0].userScore, int64(maxWeight)
	if f.userMax > 0 {
		// Karpenter reads only the heaviest preferred term: it must stay the
		// user's.
		first = min(first, f.userMax-1)
	}
	weights := chain(points, shared, first, &s.cfg)
	if len(weights) == 0 {
		return nil, false
	}
	unlisted := s.mostUnlistedPoints(&m, f, ranked[:len(weights)])
	return weights, unlistedMayWin(unlisted, points[0], shared, weights[0], &s.cfg)
}

// mostUnlistedPoints is an upper bound of what the other plugins give any
// feasible node without a term, math.MinInt64 when all are listed.
func (s *Scorer) mostUnlistedPoints(m *model, f found, listed []candidate) int64 {
	names := make(map[string]bool, len(listed))
	for i := range listed {
		names[listed[i].object.Name] = true
	}
	most := int64(math.MinInt64)
	for i := range f.candidates {
		c := &f.candidates[i]
		if c.softTaints > listed[0].softTaints || c.userScore < listed[0].userScore || names[c.object.Name] {
			continue
		}
		w := &m.cfg.PluginWeights
		most = max(most, w.NodeResourcesFit*m.fit(c.nodeState, 0)+w.BalancedAllocation*maxNodeScore+
			w.ImageLocality*m.imageLocality(c.node)+m.taintPoints(c.softTaints).max)
	}
	return most
}

// mayNeutralize tells whether the neutral spread constraint may be added: with
// an explicit constraint, nodes without the hostname label would score zero, and
// an administrator's own default constraints would be switched off.
func (s *Scorer) mayNeutralize(hostnames bool) bool {
	return s.cfg.Spreading.Default == config.SpreadingNeutralize &&
		s.cfg.Scheduler.DefaultConstraints == config.ConstraintsSystem && hostnames
}
