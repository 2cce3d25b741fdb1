package scoring

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Predict returns the points of every node that can take the pod, sorted by name.
// The pod is taken as the scheduler will see it, with our terms if it has any; it
// is not changed, and nothing is reserved for it. The reason is that of Decide: a
// pinned pod has points too, any other reason leaves none.
func (s *Scorer) Predict(pod *corev1.Pod) ([]scheduler.Points, steering.Reason) {
	q, reason := s.query(Request{Pod: pod})
	if reason != steering.ReasonNone {
		return nil, reason
	}
	q.AllNodes = true
	ctx := context.Background()
	v, err := s.index.Look(ctx, q)
	if err != nil {
		return nil, steering.ReasonTimeout
	}
	f, reason := s.feasible(ctx, &v, q, allNodes)
	m := scheduler.NewModel(&s.cfg.Scheduler, s.version.Current()[0], q.Pod, q.Demand, v.Images, v.Nodes)
	var mostPreferred int64
	for i := range f.candidates {
		mostPreferred = max(mostPreferred, f.candidates[i].userScore)
	}
	points := make([]scheduler.Points, len(f.candidates))
	for i := range f.candidates {
		points[i] = m.Points(&f.candidates[i].Feasible, f.candidates[i].userScore, mostPreferred, f.softTaints)
	}
	slices.SortFunc(points, func(a, b scheduler.Points) int { return cmp.Compare(a.Name, b.Name) })
	return points, reason
}
