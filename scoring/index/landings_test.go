package index_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

func TestLandings(t *testing.T) {
	ranked := func(p *corev1.Pod) {
		clustertest.SteeredTo("a", "u")(p)
		clustertest.SteeredTo("b", "u")(p) // a second term, and now the target
		p.Annotations[config.AnnotationSteering] = config.SteeringRanked
	}
	late := func(p *corev1.Pod) { p.Annotations = map[string]string{config.AnnotationSteering: config.SteeringLate} }
	plain := func(*corev1.Pod) {}
	tests := map[string]struct {
		options     []clustertest.PodOption // of the pending pod
		then        func(*clustertest.Cluster, *corev1.Pod)
		want        map[steering.Landing]int
		wantNode    string // of whoever is told
		wantWaiting int
	}{
		"target":                {options: []clustertest.PodOption{ranked}, then: bindTo("b"), want: map[steering.Landing]int{steering.LandedTarget: 1}, wantNode: "b"},
		"listed":                {options: []clustertest.PodOption{ranked}, then: bindTo("a"), want: map[steering.Landing]int{steering.LandedListed: 1}, wantNode: "a"},
		"other":                 {options: []clustertest.PodOption{ranked}, then: bindTo("c"), want: map[steering.Landing]int{steering.LandedOther: 1}, wantNode: "c"},
		"late":                  {options: []clustertest.PodOption{late}, then: bindTo("c"), want: map[steering.Landing]int{steering.LandedLate: 1}, wantNode: "c"},
		"plain":                 {options: []clustertest.PodOption{plain}, then: bindTo("c"), want: map[steering.Landing]int{}},
		"pending":               {options: []clustertest.PodOption{ranked}, then: func(*clustertest.Cluster, *corev1.Pod) {}, want: map[steering.Landing]int{}, wantWaiting: 1},
		"deleted while pending": {options: []clustertest.PodOption{ranked}, then: func(c *clustertest.Cluster, p *corev1.Pod) { c.DeletePod(p.UID) }, want: map[steering.Landing]int{}},
		"bound when first seen": {options: []clustertest.PodOption{ranked, clustertest.On("a")}, then: bindTo("a"), want: map[steering.Landing]int{}},
		"counted once": {options: []clustertest.PodOption{ranked}, then: func(c *clustertest.Cluster, p *corev1.Pod) {
			bindTo("b")(c, p)
			bindTo("b")(c, p)
		}, want: map[steering.Landing]int{steering.LandedTarget: 1}, wantNode: "b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), tc.options...)
			c := clustertest.New(t, nil, pod)
			var told []index.Landed
			c.Observe(index.Observers{Landed: func(l index.Landed) { told = append(told, l) }})
			c.Clock = c.Clock.Add(time.Second)
			tc.then(c, pod.DeepCopy())
			var want []index.Landed
			for where := range tc.want { // one at most
				want = append(want, index.Landed{
					Namespace: "team", Name: "p", Node: tc.wantNode, Target: pod.Annotations[config.AnnotationTarget],
					Where: where, Waited: time.Second,
				})
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("told of (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, c.Landings()); diff != "" {
				t.Errorf("landings (-want +got):\n%s", diff)
			}
			if got := c.Size().Waiting; got != tc.wantWaiting {
				t.Errorf("%d waiting, want %d", got, tc.wantWaiting)
			}
		})
	}
}

func bindTo(node string) func(*clustertest.Cluster, *corev1.Pod) {
	return func(c *clustertest.Cluster, p *corev1.Pod) {
		clustertest.On(node)(p)
		c.SetPod(p)
	}
}
