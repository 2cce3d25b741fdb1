package scheduler

import (
	"math"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// strategyPoints is what one resource scores under the strategy of
// NodeResourcesFit, 0 to 100, when so much of it is requested.
func strategyPoints(s *config.ScoringStrategy, requested, allocatable int64) int64 {
	switch s.Type {
	case config.SchedulerMostAllocated:
		return min(requested, allocatable) * MaxNodeScore / allocatable
	case config.SchedulerRequestedToCapacityRatio:
		return shapePoints(s.Ratio.Shape, min(requested, allocatable)*100/allocatable)
	default:
		return max(allocatable-requested, 0) * MaxNodeScore / allocatable
	}
}

// maxShapeScore is the scheduler's MaxCustomPriorityScore: the score of a point is
// at most so much.
const maxShapeScore = 10

// shapePoints is the score at a utilization in percent: linear between the points of
// the shape, that of the nearest one outside. The division truncates towards zero,
// so a falling shape rounds up and a rising one down.
func shapePoints(shape []config.UtilizationShapePoint, utilization int64) int64 {
	const scale = MaxNodeScore / maxShapeScore
	for i, point := range shape {
		if utilization > point.Utilization {
			continue
		}
		if i == 0 {
			return point.Score * scale
		}
		before := shape[i-1]
		rise := (point.Score - before.Score) * scale
		return before.Score*scale + rise*(utilization-before.Utilization)/(point.Utilization-before.Utilization)
	}
	return shape[len(shape)-1].Score * scale
}

// weightedMean divides as the strategy does: RequestedToCapacityRatio rounds to the
// nearest, the others down.
func weightedMean(s *config.ScoringStrategy, sum, weights int64) int64 {
	switch {
	case weights == 0:
		return 0
	case s.Type == config.SchedulerRequestedToCapacityRatio:
		return int64(math.Round(float64(sum) / float64(weights)))
	default:
		return sum / weights
	}
}
