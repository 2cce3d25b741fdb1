package agreement

import (
	"testing"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/agreement/cluster"
)

// profile is a scheduler profile and how our configuration describes it.
type profile struct {
	profile func(*schedulerconfig.KubeSchedulerProfile)
	ours    func(*config.Scheduler)
}

// profiles are those that the points are compared under.
var profiles = map[string]profile{
	"default": {ours: func(*config.Scheduler) {}},
	"most allocated GPUs": {
		profile: mostAllocated(schedulerconfig.ResourceSpec{Name: cluster.NVIDIA, Weight: 3}, schedulerconfig.ResourceSpec{Name: cluster.AMD, Weight: 2},
			schedulerconfig.ResourceSpec{Name: "cpu", Weight: 1}, schedulerconfig.ResourceSpec{Name: "ephemeral-storage", Weight: 1}),
		ours: func(s *config.Scheduler) {
			s.ScoringStrategy = config.ScoringStrategy{Type: config.SchedulerMostAllocated, Resources: []config.ResourceWeight{
				{Name: cluster.NVIDIA, Weight: 3}, {Name: cluster.AMD, Weight: 2}, {Name: "cpu", Weight: 1}, {Name: "ephemeral-storage", Weight: 1},
			}}
		},
	},
	"ratio that rises": ratio(point{0, 0}, point{100, 10}),
	"ratio that falls": ratio(point{0, 10}, point{100, 0}),
	"ratio that peaks": ratio(point{10, 0}, point{30, 3}, point{85, 10}, point{100, 2}),
	"ratio that dips":  ratio(point{0, 7}, point{33, 0}, point{70, 9}),
}

// point is a point of a shape: utilization and score.
type point struct{ utilization, score int32 }

// ratio is the profile RequestedToCapacityRatio with a shape.
func ratio(shape ...point) profile {
	var theirs []schedulerconfig.UtilizationShapePoint
	var ours []config.UtilizationShapePoint
	for _, p := range shape {
		theirs = append(theirs, schedulerconfig.UtilizationShapePoint{Utilization: p.utilization, Score: p.score})
		ours = append(ours, config.UtilizationShapePoint{Utilization: int64(p.utilization), Score: int64(p.score)})
	}
	return profile{
		profile: scoringStrategy(schedulerconfig.ScoringStrategy{
			Type: schedulerconfig.RequestedToCapacityRatio,
			Resources: []schedulerconfig.ResourceSpec{
				{Name: cluster.NVIDIA, Weight: 5}, {Name: cluster.AMD, Weight: 2}, {Name: "cpu", Weight: 1}, {Name: "memory", Weight: 3}, {Name: "ephemeral-storage", Weight: 1},
			},
			RequestedToCapacityRatio: &schedulerconfig.RequestedToCapacityRatioParam{Shape: theirs},
		}),
		ours: func(s *config.Scheduler) {
			s.ScoringStrategy = config.ScoringStrategy{
				Type: config.SchedulerRequestedToCapacityRatio,
				Resources: []config.ResourceWeight{
					{Name: cluster.NVIDIA, Weight: 5}, {Name: cluster.AMD, Weight: 2}, {Name: "cpu", Weight: 1}, {Name: "memory", Weight: 3}, {Name: "ephemeral-storage", Weight: 1},
				},
				Ratio: config.RequestedToCapacityRatio{Shape: ours},
			}
		},
	}
}

// Points agree for whatever shape an administrator writes.
func TestPointsAgreeOnRandomShapes(t *testing.T) {
	var seen coverage
	for seed := range uint64(100) {
		g := cluster.NewGenerator(seed)
		shape := randomShape(g)
		tc := ratio(shape...)
		r := newRealScheduler(t, tc.profile)
		cfg := config.Default()
		tc.ours(&cfg.Scheduler)
		for i := range 20 {
			nodes := g.Nodes(1 + g.IntN(6))
			pods := g.Running(nodes, g.IntN(4*len(nodes)))
			r.load(t, nodes, pods)
			compare(t, r, newProduct(t, cfg, nodes, pods), nodes, g.Incoming(), &seen)
			if t.Failed() {
				t.Fatalf("seed %d, cluster %d, shape %v", seed, i, shape)
			}
		}
	}
	seen.check(t)
}

// randomShape draws a shape of one to five points.
func randomShape(g *cluster.Generator) []point {
	var shape []point
	most := 1 + g.IntN(5)
	for at := g.IntN(30); at <= 100 && len(shape) < most; at += 1 + g.IntN(50) {
		shape = append(shape, point{int32(at), int32(g.IntN(11))})
	}
	return shape
}
