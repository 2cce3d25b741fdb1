package scoring

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// found is what the search for nodes found.
type found struct {
	// candidates can take the pod. They are all that can if complete is true, else
	// the best ones and what the tail needs.
	candidates []candidate
	complete   bool
	// hostnames: every node that can take the pod, now or when it has room again,
	// carries the hostname label.
	hostnames bool
	// userMax is the heaviest of the user's own preferred weights, 0 for none.
	userMax int64
	// softTaints is the most PreferNoSchedule taints on a candidate, or more.
	softTaints int64
}

// extent says how far a search goes.
type extent int

const (
	// bestOnly stops when no further node can be listed.
	bestOnly extent = iota
	// allNodes goes through all.
	allNodes
)

// feasible returns nodes that can take the pod.
func (s *Scorer) feasible(ctx context.Context, v view, pod *corev1.Pod, demand *Demand, e extent) (found, Reason) {
	if v.pool.tree == nil {
		return found{}, ReasonPinned
	}
	user, userMax, reason := userPreferences(pod)
	if reason != ReasonNone {
		return found{}, reason
	}
	if v.pool.invalid {
		return found{}, ReasonInvalidAffinity
	}
	if user != nil || len(demand.GPUs) > 1 {
		e = allNodes // the pool's order is not that of such a pod
	}
	filter := newPodFilter(pod, demand)
	q := s.newSearch(ctx, &v, &filter, user, e)
	q.run()
	if e == bestOnly && q.skippedTainted && len(q.f.candidates) < q.limit {
		q = s.newSearch(ctx, &v, &filter, user, allNodes)
		q.run()
	}
	f := q.f
	f.userMax, f.hostnames = userMax, v.pool.withoutHostname == 0
	f.countSoftTaints(v.pool.mostSoftTaints)
	switch {
	case q.timeout:
		return found{}, ReasonTimeout
	case isPinned(pod) || filter.constrained && v.pool.matching == 1 && len(f.candidates) == 1:
		return f, ReasonPinned
	case len(f.candidates) == 0 && v.unknownResource:
		return f, ReasonUnknownResource
	case len(f.candidates) == 0:
		return f, ReasonNothingFits
	}
	return f, ReasonNone
}

// countSoftTaints sets the most PreferNoSchedule taints on a candidate, or, if some
// candidates were not visited, on any node.
func (f *found) countSoftTaints(onAnyNode int64) {
	if !f.complete {
		f.softTaints = onAnyNode
		return
	}
	for i := range f.candidates {
		f.softTaints = max(f.softTaints, f.candidates[i].softTaints)
	}
}

// search goes through a pool in packing order.
type search struct {
	ctx    context.Context
	s      *Scorer
	v      *view
	filter *podFilter
	user   *nodeaffinity.PreferredSchedulingTerms
	extent extent
	// limit is how many candidates a head can have.
	limit int
	// segments are those of the scheduler's node order, if it examines only a part
	// of it.
	segments segments
	f        found
	timeout  bool
	// skippedTainted: there are candidates with PreferNoSchedule taints, which are
	// last in any ranking.
	skippedTainted bool
	// visited is how many nodes were looked at; sinceHead since there are enough
	// candidates, inClass of those in the present class.
	visited, sinceHead, inClass int
	class                       [2]int64
}

func (s *Scorer) newSearch(ctx context.Context, v *view, filter *podFilter, user *nodeaffinity.PreferredSchedulingTerms, e extent) *search {
	q := &search{
		ctx: ctx, s: s, v: v, filter: filter, user: user, extent: e,
		limit: s.cfg.Weights.MaxTerms, segments: s.newSegments(v, v.pool.tree.Len()),
		f: found{complete: e == allNodes},
	}
	q.f.candidates = make([]candidate, 0, q.limit+q.segments.count())
	return q
}

// nodesPerCheck is how many nodes are looked at between two looks at the context:
// some microseconds' work.
const nodesPerCheck = 64

// After the head has all its nodes, so many nodes per segment are looked at for
// the tail: in one class (nodes in use, empty nodes), and in all. Nodes of equal
// rank come in random order, so that 4 nodes per segment reach 98 % of the segments
// that have one (1 - 1/e^4).
const (
	visitsPerSegmentInClass = 4
	visitsPerSegment        = 12
)

// run visits the pod's own reserved node and then the pool: in packing order until
// the head has all its nodes, then, for the tail, in random order class by class.
func (q *search) run() {
	if q.v.ownState != nil {
		q.consider(q.v.ownState)
	}
	enoughAt := nextNode
	q.v.pool.tree.Ascend(func(e entry) bool {
		enoughAt = q.visit(e)
		return enoughAt == nextNode && (q.extent == allNodes || len(q.f.candidates) < q.limit)
	})
	if enoughAt == enough || q.extent == allNodes || len(q.f.candidates) < q.limit {
		q.f.complete = q.f.complete || enoughAt == nextNode && !q.skippedTainted
		return
	}
	for pivot := firstEntry; ; {
		var last packingKey
		done := true
		q.v.pool.scattered.AscendGreaterOrEqual(pivot, func(e entry) bool {
			if next := q.visit(e); next != nextNode {
				last, done = e.key, next == enough
				return false
			}
			return true
		})
		if done {
			break
		}
		pivot = afterClass(last)
	}
	tail := q.f.candidates[q.limit:]
	slices.SortFunc(tail, func(a, b candidate) int { return compareCandidates(&a, &b) })
}

// progress says how a search goes on.
type progress int

const (
	nextNode progress = iota
	nextClass
	enough
)

func (q *search) visit(e entry) progress {
	if q.visited++; q.visited%nodesPerCheck == 0 && q.ctx.Err() != nil {
		q.timeout = true
		return enough
	}
	if q.v.own == nil || e.state.object.Name != q.v.own.node {
		q.consider(e.state)
	}
	if q.extent == allNodes || len(q.f.candidates) < q.limit {
		return nextNode
	}
	if q.segments.uncovered() == 0 {
		return enough
	}
	if class := e.key.class(); class != q.class {
		q.class, q.inClass = class, 0
	}
	q.sinceHead++
	q.inClass++
	switch budget := q.segments.count(); {
	case q.sinceHead >= visitsPerSegment*budget:
		return enough
	case q.inClass >= visitsPerSegmentInClass*budget:
		return nextClass
	}
	return nextNode
}

// consider adds a node to the candidates if it can take the pod and may be listed.
func (q *search) consider(s *nodeState) {
	if !fits(s, q.filter.demand) || q.v.inBackoff(s.object.Name) {
		return
	}
	head := q.extent == allNodes || len(q.f.candidates) < q.limit
	if !head && !q.segments.isUncovered(s.node) { // nodes of the head cover theirs
		return
	}
	c := q.v.newCandidate(s, q.filter, q.user)
	if c.softTaints > 0 && q.extent == bestOnly {
		q.skippedTainted = true
		return
	}
	q.segments.cover(s.node)
	q.f.candidates = append(q.f.candidates, c)
}
