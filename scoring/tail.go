package scoring

import (
	"slices"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

// segmentLength is how many neighbours in the scheduler's node order must have a
// listed node among them, 0 if that is of no use since all feasible nodes are
// examined anyway.
//
// The scheduler examines a window of its order that holds so many feasible nodes.
// Cut the order into segments of half as many nodes: the two that the window cuts
// in two hold less than the window, so it holds a feasible node of a segment that
// is whole in it, and that segment's listed node too.
func segmentLength(cfg *config.Configuration, count, feasible int) int {
	examined := scheduler.Examined(&cfg.Scheduler, count)
	if cfg.Weights.Weighting == config.WeightingEqual || examined >= feasible || cfg.Weights.TailTerms == 0 {
		return 0
	}
	return max(examined/2, (count+cfg.Weights.TailTerms-1)/cfg.Weights.TailTerms, 1)
}

// nodesPerSegment is how many listed nodes a segment has at most because of the tail.
// One is enough for a pod that is placed at once. While pods wait for their turn,
// others fill it: measured on openb's nodes at 60 pods/s with a scheduler that lags
// two seconds behind, one pod in twenty found none with room.
const nodesPerSegment = 3

// segments are those of the scheduler's node order, and how many candidates each has.
type segments struct {
	length int // of each; 0 if there is no need for them
	places []int
	// wanted is how many candidates each is to have, listed how many it has.
	wanted int
	listed []int
	left   int // how many are still wanted
}

// newSegments cuts the nodes of a view, of which so many may be feasible. Segments
// want more than one candidate as long as the tail is not larger than the head then.
func (s *Scorer) newSegments(v *index.View, feasible int) segments {
	length := segmentLength(&s.cfg, v.Nodes, feasible)
	if length == 0 {
		return segments{}
	}
	count := (v.Nodes + length - 1) / length
	wanted := min(max(min(s.cfg.Weights.MaxTerms, s.cfg.Weights.TailTerms)/count, 1), nodesPerSegment)
	return segments{length: length, places: v.NodeOrder.Places(), wanted: wanted, listed: make([]int, count), left: wanted * count}
}

func (s *segments) count() int { return len(s.listed) }

// total is how many candidates are wanted in all.
func (s *segments) total() int { return s.wanted * len(s.listed) }

// uncovered is how many candidates are still wanted.
func (s *segments) uncovered() int { return s.left }

// of returns the segment that the node with that slot is in.
func (s *segments) of(slot int) int { return s.places[slot] / s.length }

func (s *segments) isUncovered(slot int) bool { return s.length > 0 && s.listed[s.of(slot)] < s.wanted }

// cover notes a candidate of a node's segment.
func (s *segments) cover(slot int) {
	if s.isUncovered(slot) {
		s.listed[s.of(slot)]++
		s.left--
	}
}

// tail returns the best candidates of each segment of the scheduler's node order
// that has not enough in the head, best first.
func (s *Scorer) tail(f found, v *index.View, head []candidate) []candidate {
	segments := s.newSegments(v, max(len(f.candidates), v.Pool.Entries.Len()))
	if segments.length == 0 {
		return nil
	}
	inHead := make(map[*nodes.Node]bool, len(head))
	for i := range head {
		segments.cover(head[i].Slot)
		inHead[head[i].Node] = true
	}
	tops := make([]best, segments.count())
	for i, listed := range segments.listed {
		tops[i] = best{n: segments.wanted - listed, order: compareCandidates}
	}
	for i := range f.candidates {
		if c := &f.candidates[i]; segments.isUncovered(c.Slot) && !inHead[c.Node] {
			tops[segments.of(c.Slot)].add(c)
		}
	}
	var tail []candidate
	for i := range tops {
		tail = append(tail, tops[i].top...)
	}
	slices.SortFunc(tail, func(a, b candidate) int { return compareCandidates(&a, &b) })
	return tail
}
