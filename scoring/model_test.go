package scoring

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// usual is the pod of most examples: a twelfth of the node's CPU and an
// eighteenth of its memory per GPU.
var usual = list(nvidia, "1", "cpu", "8", "memory", "64Gi")

// modelFor returns the model for a pod on the first node of a cluster.
func modelFor(t *testing.T, change func(*config.Configuration), pod *corev1.Pod, objects ...any) (model, *nodeState) {
	t.Helper()
	c := newCluster(t, change, objects...)
	d, reason := NewDemand(pod, c.Scorer.cfg.Resources)
	if reason != ReasonNone {
		t.Fatal(reason)
	}
	snapshot := c.snapshot()
	return newModel(&c.Scorer.cfg.Scheduler, c.Scorer.version.current()[0], pod, &d, snapshot.images, len(snapshot.nodes)), snapshot.nodes[0]
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
			request: usual,
			wantFit: 92, // ((96-8)*100/96=91 + (1152-64)*100/1152=94) / 2 = 92
			// before 100; after: 8/96=.0833, 64/1152=.0556, 100*(1-.0278/2)=98; 50+(50-2)/2 = 74
			wantBalanced: 74,
		},
		"seven copies more": {
			request: usual, level: 7,
			wantFit: 44, // ((96-64)*100/96=33 + (1152-512)*100/1152=55) / 2
			// before: .5833-.3889=.1944, 90; after: .6667-.4444=.2222, 88; 50+(50-2)/2
			wantBalanced: 74,
		},
		"before 1.36 only the state after counts": {
			change:  func(c *config.Configuration) { c.Scheduler.KubernetesVersion = "1.35" },
			request: usual, level: 7,
			wantFit: 44, wantBalanced: 88,
		},
		"an improved balance": {
			request: list(nvidia, "1", "memory", "576Gi"), used: list("cpu", "48"),
			// cpu: the scheduler counts 100m for the pod and 48000m for the other:
			// (96000-48100)*100/96000=49; memory: the other counts 200Mi:
			// (1152Gi-576Gi-200Mi)*100/1152Gi=49
			wantFit: 49,
			// before .5-0: 75; after .5-.5: 100; 50+(50+25)/2 = 87
			wantBalanced: 87,
		},
		"neither CPU nor memory requested": {
			request: list(nvidia, "1"),
			wantFit: 99, // (95900*100/96000=99 + 99) / 2
		},
		"MostAllocated on GPUs": {
			change: func(c *config.Configuration) {
				c.Scheduler.ScoringStrategy = config.ScoringStrategy{
					Type:      config.SchedulerMostAllocated,
					Resources: []config.ResourceWeight{{Name: "cpu", Weight: 1}, {Name: nvidia, Weight: 3}},
				}
			},
			request: usual, used: list(nvidia, "3"),
			wantFit:      39, // cpu (100m+8000m)*100/96000=8; GPUs 4*100/8=50; (8*1 + 50*3)/4 = 39
			wantBalanced: 74,
		},
		"RequestedToCapacityRatio": {
			change: func(c *config.Configuration) {
				c.Scheduler.ScoringStrategy = config.ScoringStrategy{
					Type:      config.SchedulerRequestedToCapacityRatio,
					Resources: []config.ResourceWeight{{Name: "cpu", Weight: 1}, {Name: nvidia, Weight: 3}, {Name: "memory", Weight: 5}},
					Ratio:     config.RequestedToCapacityRatio{Shape: []config.UtilizationShapePoint{{Utilization: 5, Score: 0}, {Utilization: 55, Score: 7}, {Utilization: 100, Score: 1}}},
				}
			},
			request: usual, used: list(nvidia, "4"),
			// cpu: 8100m of 96 are 8 percent, 70*3/50=4; GPUs: 62 percent, 70-(60*7/45=9)=61;
			// memory: 5 percent score 0 and do not count; (4*1 + 61*3)/4 = 46.75
			wantFit:      47,
			wantBalanced: 74,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects := []any{gpuNode("n", list(nvidia, "8"))}
			if tc.used != nil {
				objects = append(objects, gpuPod("o", tc.used, on("n")))
			}
			m, node := modelFor(t, tc.change, gpuPod("p", tc.request), objects...)
			if got := m.fit(node, tc.level); got != tc.wantFit {
				t.Errorf("fit %d, want %d", got, tc.wantFit)
			}
			if got := m.balanced(node, tc.level); got != tc.wantBalanced {
				t.Errorf("balanced %d, want %d", got, tc.wantBalanced)
			}
		})
	}
}

// The range is the same for all copies of a pod that fill a node.
func TestPointsWhileFilling(t *testing.T) {
	var want pointRange
	for copies := range 8 {
		objects := []any{gpuNode("n", list(nvidia, "8"))}
		for i := range copies {
			objects = append(objects, gpuPod(string(rune('a'+i)), usual, on("n")))
		}
		m, node := modelFor(t, nil, gpuPod("p", usual), objects...)
		got := m.pointsWhileFilling(&schedulerNode{nodeState: node})
		if copies == 0 {
			want = got
			// fit 92..44, balanced 74 or 75, TaintToleration 3*100
			if got.min != 44+74+300 || got.max < 92+74+300 || got.max > 92+75+300 {
				t.Errorf("range %+v", got)
			}
		}
		if got != want {
			t.Errorf("with %d copies %+v, want %+v", copies, got, want)
		}
	}
}

func TestTaintPoints(t *testing.T) {
	m := model{cfg: &config.Scheduler{PluginWeights: config.PluginWeights{TaintToleration: 3}}, maxSoftTaints: 4}
	for _, tc := range []struct {
		taints int64
		want   pointRange
	}{
		{0, pointRange{300, 300}},
		{1, pointRange{0, 225}}, // 3*(100-100*1/4)
		{4, pointRange{0, 0}},
	} {
		if got := m.taintPoints(tc.taints); got != tc.want {
			t.Errorf("%d taints: %+v, want %+v", tc.taints, got, tc.want)
		}
	}
}

func TestImageLocality(t *testing.T) {
	const mib = 1 << 20
	pod := gpuPod("p", usual, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "reg.example/train" })
	tests := map[string]struct {
		objects []any
		want    int64
	}{
		"nowhere": {objects: []any{gpuNode("n", list(nvidia, "8"))}},
		"on the only node": {
			objects: []any{gpuNode("n", list(nvidia, "8"), withImage("reg.example/train:latest", 500*mib))},
			want:    48, // 100*(500-23)/(1000-23) = 48.8
		},
		"on one of two nodes": {
			objects: []any{
				gpuNode("n", list(nvidia, "8"), withImage("reg.example/train:latest", 500*mib)), gpuNode("m", list(nvidia, "8")),
			},
			want: 23, // 100*(250-23)/977 = 23.2
		},
		"large": {
			objects: []any{gpuNode("n", list(nvidia, "8"), withImage("reg.example/train:latest", 9000*mib))},
			want:    100,
		},
		"on another node": {
			objects: []any{
				gpuNode("n", list(nvidia, "8")), gpuNode("m", list(nvidia, "8"), withImage("reg.example/train:latest", 500*mib)),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, node := modelFor(t, nil, pod, tc.objects...)
			if got := m.imageLocality(node.node); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestNormalizedImage(t *testing.T) {
	for name, want := range map[string]string{
		"train": "train:latest", "train:v1": "train:v1", "reg:5000/train": "reg:5000/train:latest", "reg:5000/train:v1": "reg:5000/train:v1",
	} {
		if got := normalizedImage(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestHistogramMedian(t *testing.T) {
	var h histogram
	if got := h.median(); got != 0 {
		t.Errorf("empty: %d", got)
	}
	for _, v := range []int64{8000, 8000, 8000, 1, 1 << 45} {
		h.add(1, v)
	}
	if got := h.median(); got != 7680 { // 8000 = 2^12 * 1.95, bucket 15/8 * 2^12
		t.Errorf("got %d, want 7680", got)
	}
	h.add(-1, 1<<45)
	h.add(-1, 8000)
	h.add(-1, 8000)
	h.add(-1, 8000)
	if got := h.median(); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}
