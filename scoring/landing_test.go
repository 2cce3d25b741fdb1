package scoring

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func TestLandings(t *testing.T) {
	ranked := func(p *corev1.Pod) {
		steeredTo("a", "u")(p)
		steeredTo("b", "u")(p) // a second term, and now the target
		p.Annotations[config.AnnotationSteering] = config.SteeringRanked
	}
	late := func(p *corev1.Pod) { p.Annotations = map[string]string{config.AnnotationSteering: config.SteeringLate} }
	plain := func(*corev1.Pod) {}
	tests := map[string]struct {
		options     []podOption // of the pending pod
		then        func(*testCluster, *corev1.Pod)
		want        map[Landing]int
		wantWaiting int
	}{
		"target":                {options: []podOption{ranked}, then: bindTo("b"), want: map[Landing]int{LandedTarget: 1}},
		"listed":                {options: []podOption{ranked}, then: bindTo("a"), want: map[Landing]int{LandedListed: 1}},
		"other":                 {options: []podOption{ranked}, then: bindTo("c"), want: map[Landing]int{LandedOther: 1}},
		"late":                  {options: []podOption{late}, then: bindTo("c"), want: map[Landing]int{LandedLate: 1}},
		"plain":                 {options: []podOption{plain}, then: bindTo("c"), want: map[Landing]int{}},
		"pending":               {options: []podOption{ranked}, then: func(*testCluster, *corev1.Pod) {}, want: map[Landing]int{}, wantWaiting: 1},
		"deleted while pending": {options: []podOption{ranked}, then: func(c *testCluster, p *corev1.Pod) { c.DeletePod(p.UID) }, want: map[Landing]int{}},
		"bound when first seen": {options: []podOption{ranked, on("a")}, then: bindTo("a"), want: map[Landing]int{}},
		"counted once": {options: []podOption{ranked}, then: func(c *testCluster, p *corev1.Pod) {
			bindTo("b")(c, p)
			bindTo("b")(c, p)
		}, want: map[Landing]int{LandedTarget: 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := gpuPod("p", list(nvidia, "1"), tc.options...)
			c := newCluster(t, nil, pod)
			tc.then(c, pod.DeepCopy())
			if diff := cmp.Diff(tc.want, c.Landings()); diff != "" {
				t.Errorf("landings (-want +got):\n%s", diff)
			}
			if got := c.Size().Waiting; got != tc.wantWaiting {
				t.Errorf("%d waiting, want %d", got, tc.wantWaiting)
			}
		})
	}
}

func bindTo(node string) func(*testCluster, *corev1.Pod) {
	return func(c *testCluster, p *corev1.Pod) {
		on(node)(p)
		c.SetPod(p)
	}
}
