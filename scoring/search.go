package scoring

import (
	"context"
	"slices"
	"sync"

	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
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
func (s *Scorer) feasible(ctx context.Context, v *index.View, query *index.Query, e extent) (found, steering.Reason) {
	pod, demand := query.Pod, query.Demand
	user, userMax, reason := nodes.UserPreferences(pod)
	if reason != steering.ReasonNone {
		return found{}, reason
	}
	if v.Pool.Invalid {
		return found{}, steering.ReasonInvalidAffinity
	}
	if user != nil || len(demand.GPUs) > 1 {
		e = allNodes // the pool's order is not that of such a pod
	}
	filter := nodes.NewFilter(pod, demand)
	q := s.newSearch(ctx, v, &filter, user, e)
	q.run()
	if e == bestOnly && q.skippedTainted && len(q.f.candidates) < q.limit {
		q = s.newSearch(ctx, v, &filter, user, allNodes)
		q.run()
	}
	f := q.f
	f.userMax, f.hostnames = userMax, v.Pool.WithoutHostname == 0
	f.countSoftTaints(v.Pool.MostSoftTaints)
	switch {
	case q.timeout:
		return found{}, steering.ReasonTimeout
	case nodes.IsPinned(pod) || filter.Constrained && v.Pool.Matching == 1 && len(f.candidates) == 1:
		return f, steering.ReasonPinned
	case len(f.candidates) == 0 && v.UnknownResource:
		return f, steering.ReasonUnknownResource
	case len(f.candidates) == 0:
		return f, steering.ReasonNothingFits
	}
	return f, steering.ReasonNone
}

// countSoftTaints sets the most PreferNoSchedule taints on a candidate, or, if some
// candidates were not visited, on any node.
func (f *found) countSoftTaints(onAnyNode int64) {
	if !f.complete {
		f.softTaints = onAnyNode
		return
	}
	for i := range f.candidates {
		f.softTaints = max(f.softTaints, f.candidates[i].SoftTaints)
	}
}

// search goes through a pool.
type search struct {
	ctx    context.Context
	s      *Scorer
	v      *index.View
	filter *nodes.Filter
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
	// visited is how many nodes were looked at.
	visited int
}

func (s *Scorer) newSearch(ctx context.Context, v *index.View, filter *nodes.Filter, user *nodeaffinity.PreferredSchedulingTerms, e extent) *search {
	q := &search{
		ctx: ctx, s: s, v: v, filter: filter, user: user, extent: e,
		limit: s.cfg.Weights.MaxTerms, segments: s.newSegments(v, v.Pool.Entries.Len()),
		f: found{complete: e == allNodes},
	}
	q.f.candidates = slices.Grow(*candidateLists.Get().(*[]candidate), q.limit+q.segments.total())
	return q
}

// candidateLists are lists to be used again: the largest part of what a decision needs
// for its time only. Who looks at the candidates later keeps the list.
var candidateLists = sync.Pool{New: func() any { return new([]candidate) }}

// maxKeptCandidates is how long a list may be to be used again. All terms together are
// fewer; a pod with preferences makes as many candidates as there are nodes.
const maxKeptCandidates = 1024

// release says that nobody looks at the candidates any more.
func (f *found) release() {
	if c := cap(f.candidates); c > 0 && c <= maxKeptCandidates {
		clear(f.candidates) // so that it keeps no nodes
		list := f.candidates[:0]
		candidateLists.Put(&list)
	}
}

// nodesPerCheck is how many nodes are looked at between two looks at the context:
// some microseconds' work.
const nodesPerCheck = 64

// visitsPerSegmentInClass is how many nodes of one class are gone through for the
// tail, per candidate wanted. They come in random order, so that 4 per segment reach
// 98 % of the segments that have one of the class (1 - 1/e^4).
const visitsPerSegmentInClass = 4

// run looks at the pod's own reserved node, then at the pool in packing order until
// the head has all its nodes, then for the tail.
func (q *search) run() {
	if q.v.OwnState != nil {
		q.consider(q.v.OwnState)
	}
	q.v.Pool.Entries.Ascend(func(e pool.Entry) bool { return q.visit(e.State) && !q.headFull() })
	if q.headFull() && !q.timeout {
		q.findTail()
		return
	}
	q.f.complete = q.f.complete || !q.timeout && !q.skippedTainted
}

// headFull tells whether further nodes can only be listed in the tail.
func (q *search) headFull() bool {
	return q.extent == bestOnly && len(q.f.candidates) >= q.limit
}

// findTail adds nodes of the segments that have not enough yet, as far as it finds
// them without looking at too many, best first.
func (q *search) findTail() {
	head := len(q.f.candidates)
	for c := range pool.Classes {
		if q.wantsTail() {
			q.findTailIn(c)
		}
	}
	slices.SortFunc(q.f.candidates[head:], func(a, b candidate) int { return compareCandidates(&a, &b) })
}

// wantsTail tells whether to go on looking for nodes of the tail.
func (q *search) wantsTail() bool { return q.segments.uncovered() > 0 && !q.timeout }

// findTailIn does so in one class, which has its own share of the visits. It begins
// where the first candidate says and goes round: pods expected elsewhere get other
// nodes, or many at a time would fill the same few, and those expected on one node get
// the same.
func (q *search) findTailIn(c pool.Class) {
	visits := visitsPerSegmentInClass * q.segments.total()
	visit := func(p pool.Place) bool {
		if p.Class != c {
			return false
		}
		visits--
		inTime := true
		if q.segments.isUncovered(int(p.Slot)) {
			if s := q.v.Latest.Of(p); s != nil {
				inTime = q.visit(s)
			}
		}
		return inTime && q.wantsTail() && visits > 0
	}
	begin := pool.PlaceFrom(c, q.f.candidates[0].Node)
	q.v.Pool.Scattered.AscendGreaterOrEqual(begin, visit)
	if q.wantsTail() && visits > 0 {
		q.v.Pool.Scattered.AscendRange(pool.Place{Class: c}, begin, visit)
	}
}

// visit looks at a node of the pool. It is false when there is no more time.
func (q *search) visit(s *nodes.State) bool {
	if q.visited++; q.visited%nodesPerCheck == 0 && q.ctx.Err() != nil {
		q.timeout = true
		return false
	}
	if q.v.Own == nil || s.Name != q.v.Own.Node {
		q.consider(s)
	}
	return true
}

// consider adds a node to the candidates if it can take the pod and may be listed.
func (q *search) consider(s *nodes.State) {
	if q.headFull() && (!q.segments.isUncovered(s.Slot) || q.has(s)) { // enough of its segment are listed, or it is
		return
	}
	if !nodes.Fits(s, q.filter.Demand) || q.v.InBackoff(s.Name) {
		return
	}
	c := newCandidate(q.v, s, q.filter, q.user)
	if c.SoftTaints > 0 && q.extent == bestOnly {
		q.skippedTainted = true
		return
	}
	q.segments.cover(s.Slot)
	q.f.candidates = append(q.f.candidates, c)
}

// has tells whether a node is a candidate already.
func (q *search) has(s *nodes.State) bool {
	for i := range q.f.candidates {
		if q.f.candidates[i].Node == s.Node {
			return true
		}
	}
	return false
}
