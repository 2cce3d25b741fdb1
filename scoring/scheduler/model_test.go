package scheduler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// modelFor returns the model for a pod on the first node of a cluster.
func modelFor(t *testing.T, change func(*config.Configuration), pod *corev1.Pod, objects ...any) (scheduler.Model, *nodes.State) {
	t.Helper()
	c := clustertest.New(t, change, objects...)
	d, reason := demand.Of(pod, c.Config.Resources)
	if reason != steering.ReasonNone {
		t.Fatal(reason)
	}
	states, images := c.States()
	return scheduler.NewModel(&c.Config.Scheduler, c.Version().Current()[0], pod, &d, images, len(states)), states[0]
}

func TestModelResources(t *testing.T) {
	tests := map[string]struct {
		change       func(*config.Configuration)
		request      corev1.ResourceList
		used         corev1.ResourceList
		level        int64
		wantFit      int64
		wantBalanced int64
	}{
		"empty node": {
			request: clustertest.Usual,
			wantFit: 92, // ((96-8)*100/96=91 + (1152-64)*100/1152=94) / 2 = 92
			// before 100; after: 8/96=.0833, 64/1152=.0556, 100*(1-.0278/2)=98; 50+(50-2)/2 = 74
			wantBalanced: 74,
		},
		"seven copies more": {
			request: clustertest.Usual, level: 7,
			wantFit: 44, // ((96-64)*100/96=33 + (1152-512)*100/1152=55) / 2
			// before: .5833-.3889=.1944, 90; after: .6667-.4444=.2222, 88; 50+(50-2)/2
			wantBalanced: 74,
		},
		"before 1.36 only the state after counts": {
			change:  func(c *config.Configuration) { c.Scheduler.KubernetesVersion = "1.35" },
			request: clustertest.Usual, level: 7,
			wantFit: 44, wantBalanced: 88,
		},
		"an improved balance": {
			request: clustertest.List(clustertest.NVIDIA, "1", "memory", "576Gi"), used: clustertest.List("cpu", "48"),
			// cpu: the scheduler counts 100m for the pod and 48000m for the other:
			// (96000-48100)*100/96000=49; memory: the other counts 200Mi:
			// (1152Gi-576Gi-200Mi)*100/1152Gi=49
			wantFit: 49,
			// before .5-0: 75; after .5-.5: 100; 50+(50+25)/2 = 87
			wantBalanced: 87,
		},
		"neither CPU nor memory requested": {
			request: clustertest.List(clustertest.NVIDIA, "1"),
			wantFit: 99, // (95900*100/96000=99 + 99) / 2
		},
		"MostAllocated on GPUs": {
			change: func(c *config.Configuration) {
				c.Scheduler.ScoringStrategy = config.ScoringStrategy{
					Type:      config.SchedulerMostAllocated,
					Resources: []config.ResourceWeight{{Name: "cpu", Weight: 1}, {Name: clustertest.NVIDIA, Weight: 3}},
				}
			},
			request: clustertest.Usual, used: clustertest.List(clustertest.NVIDIA, "3"),
			wantFit:      39, // cpu (100m+8000m)*100/96000=8; GPUs 4*100/8=50; (8*1 + 50*3)/4 = 39
			wantBalanced: 74,
		},
		"RequestedToCapacityRatio": {
			change: func(c *config.Configuration) {
				c.Scheduler.ScoringStrategy = config.ScoringStrategy{
					Type:      config.SchedulerRequestedToCapacityRatio,
					Resources: []config.ResourceWeight{{Name: "cpu", Weight: 1}, {Name: clustertest.NVIDIA, Weight: 3}, {Name: "memory", Weight: 5}},
					Ratio:     config.RequestedToCapacityRatio{Shape: []config.UtilizationShapePoint{{Utilization: 5, Score: 0}, {Utilization: 55, Score: 7}, {Utilization: 100, Score: 1}}},
				}
			},
			request: clustertest.Usual, used: clustertest.List(clustertest.NVIDIA, "4"),
			// cpu: 8100m of 96 are 8 percent, 70*3/50=4; GPUs: 62 percent, 70-(60*7/45=9)=61;
			// memory: 5 percent score 0 and do not count; (4*1 + 61*3)/4 = 46.75
			wantFit:      47,
			wantBalanced: 74,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects := []any{clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"))}
			if tc.used != nil {
				objects = append(objects, clustertest.GPUPod("o", tc.used, clustertest.On("n")))
			}
			m, node := modelFor(t, tc.change, clustertest.GPUPod("p", tc.request), objects...)
			if got := m.Fit(node, tc.level); got != tc.wantFit {
				t.Errorf("fit %d, want %d", got, tc.wantFit)
			}
			if got := m.Balanced(node, tc.level); got != tc.wantBalanced {
				t.Errorf("balanced %d, want %d", got, tc.wantBalanced)
			}
		})
	}
}

// The range is the same for all copies of a pod that fill a node.
func TestPointsWhileFilling(t *testing.T) {
	var want [2]int64
	for copies := range 8 {
		objects := []any{clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"))}
		for i := range copies {
			objects = append(objects, clustertest.GPUPod(string(rune('a'+i)), clustertest.Usual, clustertest.On("n")))
		}
		m, node := modelFor(t, nil, clustertest.GPUPod("p", clustertest.Usual), objects...)
		least, most := m.RangeWhileFilling(node)
		got := [2]int64{least, most}
		if copies == 0 {
			want = got
			// fit 92..44, balanced 74 or 75, TaintToleration 3*100
			if least != 44+74+300 || most < 92+74+300 || most > 92+75+300 {
				t.Errorf("range %v", got)
			}
		}
		if got != want {
			t.Errorf("with %d copies %v, want %v", copies, got, want)
		}
	}
}

func TestImageLocality(t *testing.T) {
	const mib = 1 << 20
	pod := clustertest.GPUPod("p", clustertest.Usual, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "reg.example/train" })
	tests := map[string]struct {
		objects []any
		want    int64
	}{
		"nowhere": {objects: []any{clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"))}},
		"on the only node": {
			objects: []any{clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"), clustertest.WithImage("reg.example/train:latest", 500*mib))},
			want:    48, // 100*(500-23)/(1000-23) = 48.8
		},
		"on one of two nodes": {
			objects: []any{
				clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"), clustertest.WithImage("reg.example/train:latest", 500*mib)), clustertest.GPUNode("m", clustertest.List(clustertest.NVIDIA, "8")),
			},
			want: 23, // 100*(250-23)/977 = 23.2
		},
		"large": {
			objects: []any{clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"), clustertest.WithImage("reg.example/train:latest", 9000*mib))},
			want:    100,
		},
		"on another node": {
			objects: []any{
				clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("m", clustertest.List(clustertest.NVIDIA, "8"), clustertest.WithImage("reg.example/train:latest", 500*mib)),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, node := modelFor(t, nil, pod, tc.objects...)
			if got := m.ImageLocality(node.Node); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
