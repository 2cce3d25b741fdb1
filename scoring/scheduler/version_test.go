package scheduler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

func minor(n uint) config.MinorVersion { return config.MinorVersion{Major: 1, Minor: n} }

// look is one look at an API server's version.
type look struct {
	at      time.Duration
	server  config.MinorVersion
	changed bool
	held    []config.MinorVersion
}

func TestSchedulerVersionFollowsTheServer(t *testing.T) {
	const minute = time.Minute
	for name, looks := range map[string][]look{
		"it stays": {
			{0, minor(36), true, []config.MinorVersion{minor(36)}},
			{60 * minute, minor(36), false, []config.MinorVersion{minor(36)}},
		},
		"an upgrade: the old version counts for ten minutes more": {
			{0, minor(35), true, []config.MinorVersion{minor(35)}},
			{1 * minute, minor(36), true, []config.MinorVersion{minor(36), minor(35)}},
			{10 * minute, minor(36), false, []config.MinorVersion{minor(36), minor(35)}},
			{11 * minute, minor(36), true, []config.MinorVersion{minor(36)}},
		},
		"several API servers answer in turn": {
			{0, minor(35), true, []config.MinorVersion{minor(35)}},
			{5 * minute, minor(36), true, []config.MinorVersion{minor(36), minor(35)}},
			{9 * minute, minor(35), false, []config.MinorVersion{minor(36), minor(35)}},
			{13 * minute, minor(36), false, []config.MinorVersion{minor(36), minor(35)}},
			{20 * minute, minor(36), true, []config.MinorVersion{minor(36)}},
		},
		"a downgrade": {
			{0, minor(36), true, []config.MinorVersion{minor(36)}},
			{1 * minute, minor(35), true, []config.MinorVersion{minor(36), minor(35)}},
			{12 * minute, minor(35), true, []config.MinorVersion{minor(35)}},
		},
		"the first look confirms what was assumed": {
			{0, config.NewestVersion, true, []config.MinorVersion{config.NewestVersion}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
			now := start
			v := scheduler.NewVersion(config.Default().Scheduler, func() time.Time { return now })
			if diff := cmp.Diff([]config.MinorVersion{config.NewestVersion}, v.Held()); diff != "" || v.Source() != scheduler.VersionAssumed {
				t.Errorf("before the first look: source %s (-want +got):\n%s", v.Source(), diff)
			}
			for _, l := range looks {
				now = start.Add(l.at)
				if changed := v.See(l.server); changed != l.changed {
					t.Errorf("at %s: changed %v", l.at, changed)
				}
				if diff := cmp.Diff(l.held, v.Held()); diff != "" || v.Source() != scheduler.VersionServer {
					t.Errorf("at %s: source %s (-want +got):\n%s", l.at, v.Source(), diff)
				}
			}
		})
	}
}

func TestConfiguredVersionStays(t *testing.T) {
	v := scheduler.NewVersion(config.Scheduler{KubernetesVersion: "1.35"}, time.Now)
	if v.See(minor(37)) {
		t.Error("the API server's version changes a configured one")
	}
	if diff := cmp.Diff([]config.MinorVersion{minor(35)}, v.Held()); diff != "" || v.Source() != scheduler.VersionConfigured {
		t.Errorf("source %s (-want +got):\n%s", v.Source(), diff)
	}
}

// After a change the weights are right for both versions. With the formulas of 1.35
// the others' points of the usual pod range from 44+88 (the eighth on a node) to 92+98
// (the first), with those of 1.36 from 44+74 to 92+74. So a step is
// ceil((190-132+2)/2) = 30 % or ceil((166-118+2)/2) = 25 %; the larger is right for
// both.
func TestWeightsAreRightForBothVersions(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("c", clustertest.List(clustertest.NVIDIA, "8")),
		clustertest.GPUNode("d", clustertest.List(clustertest.NVIDIA, "8")))
	weights := func() (all []int32) {
		d := c.Decide(t.Context(), scoring.Request{Pod: clustertest.GPUPod("p", clustertest.Usual), Namespace: "team-a", DryRun: true})
		for _, n := range d.Ranking {
			all = append(all, n.Weight)
		}
		return all
	}
	for _, step := range []struct {
		see     config.MinorVersion
		forward time.Duration
		want    []int32
	}{
		{see: minor(35), want: []int32{100, 70, 49, 34}},
		{see: minor(36), want: []int32{100, 70, 49, 34}},
		{see: minor(36), forward: scheduler.VersionHeld + time.Second, want: []int32{100, 75, 56, 42}},
	} {
		c.Clock = c.Clock.Add(step.forward)
		c.Version().See(step.see)
		if diff := cmp.Diff(step.want, weights()); diff != "" {
			t.Errorf("weights after %v (-want +got):\n%s", step.see, diff)
		}
	}
}

// The API server of 1.33 drops what a pod asks for as a whole, after admission.
func TestPodLevelResourcesByVersion(t *testing.T) {
	pod := clustertest.GPUPod("p", clustertest.Usual, func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: clustertest.List("cpu", "1000")}
	})
	for version, want := range map[string]steering.Reason{"1.33": steering.ReasonNone, "1.34": steering.ReasonNothingFits} {
		c := clustertest.New(t, func(cfg *config.Configuration) { cfg.Scheduler.KubernetesVersion = version }, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("m", clustertest.List(clustertest.NVIDIA, "8")))
		if d := c.DecideOn(pod); d.Reason != want {
			t.Errorf("%s: reason %q, want %q", version, d.Reason, want)
		}
		if _, reason := c.Predict(pod); reason != want {
			t.Errorf("%s: predicted with reason %q, want %q", version, reason, want)
		}
	}
	if pod.Spec.Resources == nil {
		t.Error("the pod was changed")
	}
}

// A pod with one container and one image volume of 500 MiB, which the only node has,
// and whose container's image is nowhere.
func TestImageVolumesByVersion(t *testing.T) {
	const mib = 1 << 20
	pod := clustertest.GPUPod("p", clustertest.Usual, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: "reg.example/model:v1"},
		}}}
	})
	for version, want := range map[string]int64{
		"1.35": 0,  // it does not count
		"1.36": 48, // 100*(500-23)/(1000-23), by the one container
		"1.37": 24, // 100*(500-23)/(2000-23), by container and volume
	} {
		m, node := modelFor(t, func(cfg *config.Configuration) { cfg.Scheduler.KubernetesVersion = version }, pod,
			clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"), clustertest.WithImage("reg.example/model:v1", 500*mib)))
		if got := m.ImageLocality(node.Node); got != want {
			t.Errorf("%s: got %d, want %d", version, got, want)
		}
	}
}
