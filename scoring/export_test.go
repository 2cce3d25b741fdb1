package scoring

import (
	"context"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// SegmentLength is segmentLength, for the tests.
var SegmentLength = segmentLength

// OnView is decideOn, for the tests.
func (s *Scorer) OnView(ctx context.Context, v *index.View, q *index.Query) Decision {
	return s.decideOn(ctx, v, q)
}

// Found is what a search found, for the tests.
type Found struct {
	// Ranked are the names of the ranked nodes, of which only the first get a weight.
	Ranked []string
	// Candidates is how many nodes were found; Complete: they are all that there are.
	Candidates int
	Complete   bool
}

// Search is feasible, through all nodes or to the early end, and rank, for the tests.
func (s *Scorer) Search(ctx context.Context, v *index.View, q *index.Query, all bool) (Found, steering.Reason) {
	e := bestOnly
	if all {
		e = allNodes
	}
	f, reason := s.feasible(ctx, v, q, e)
	out := Found{Candidates: len(f.candidates), Complete: f.complete}
	if len(f.candidates) > 0 {
		for _, c := range s.rank(f, v) {
			out.Ranked = append(out.Ranked, c.Name)
		}
	}
	return out, reason
}

// Segments is how many segments the scheduler's node order has, and how many listed
// nodes they lack, for the tests.
func (s *Scorer) Segments(ctx context.Context, v *index.View, q *index.Query) (count, uncovered int) {
	f, _ := s.feasible(ctx, v, q, bestOnly)
	all := s.newSegments(v, v.Pool.Entries.Len())
	for _, c := range s.rank(f, v) {
		all.cover(c.Slot)
	}
	return all.count(), all.uncovered()
}
