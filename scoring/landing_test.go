package scoring

import (
	"errors"
	"testing"
	"time"

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
			var told []Landed
			c.Observe(Observers{Landed: func(l Landed) { told = append(told, l) }})
			c.clock = c.clock.Add(time.Second)
			tc.then(c, pod.DeepCopy())
			for _, l := range told {
				want := Landed{
					Namespace: "team", Name: "p", Node: l.Node, Target: pod.Annotations[config.AnnotationTarget],
					Where: l.Where, Waited: time.Second,
				}
				if diff := cmp.Diff(want, l); diff != "" || tc.want[l.Where] == 0 {
					t.Errorf("told of %+v (-want +got):\n%s", l, diff)
				}
			}
			if len(told) != len(tc.want) {
				t.Errorf("told of %v, want one of each of %v", told, tc.want)
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

func bindTo(node string) func(*testCluster, *corev1.Pod) {
	return func(c *testCluster, p *corev1.Pod) {
		on(node)(p)
		c.SetPod(p)
	}
}

// Pods that appear without a decision count once, when they look as if we should
// have been asked about them.
func TestUnsteered(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want int
	}{
		"not steered":     {gpuPod("p", list(nvidia, "1")), 1},
		"steered":         {gpuPod("p", list(nvidia, "1"), func(p *corev1.Pod) { p.Annotations = map[string]string{config.AnnotationSteering: "ranked"} }), 0},
		"no GPU":          {gpuPod("p", list("cpu", "1")), 0},
		"other namespace": {gpuPod("p", list(nvidia, "1"), func(p *corev1.Pod) { p.Namespace = "other" }), 0},
		"opted out":       {gpuPod("p", list(nvidia, "1"), func(p *corev1.Pod) { p.Labels = map[string]string{config.LabelEnabled: "false"} }), 0},
		"bound by hand":   {gpuPod("p", list(nvidia, "1"), on("g1")), 0},
		"of a DaemonSet":  {gpuPod("p", list(nvidia, "1"), ownedByDaemonSet), 0},
		"other scheduler": {gpuPod("p", list(nvidia, "1"), func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }), 0},
		"gated":           {gpuPod("p", list(nvidia, "1"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, nil, gpuNode("g1", list(nvidia, "8")))
			if err := errors.Join(FeedPods(c.Index).Add(tc.pod), FeedPods(c.Index).Update(tc.pod), FeedPods(c.Index).Replace([]any{tc.pod}, "")); err != nil {
				t.Fatal(err)
			}
			if got := c.Unsteered(); got != tc.want {
				t.Errorf("%d unsteered pods, want %d", got, tc.want)
			}
		})
	}
}

// What counts is how a pod appeared. Its gates may open later, or its label change, and
// nobody is asked about that.
func TestUnsteeredAtFirst(t *testing.T) {
	gated := gpuPod("p", list(nvidia, "1"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })
	optedOut := gpuPod("q", list(nvidia, "1"), func(p *corev1.Pod) { p.Labels = map[string]string{config.LabelEnabled: "false"} })
	c := newCluster(t, nil, gpuNode("g1", list(nvidia, "8")), gated, optedOut)
	for _, pod := range []*corev1.Pod{gated, optedOut} {
		pod = pod.DeepCopy()
		pod.Spec.SchedulingGates, pod.Labels = nil, nil
		if err := errors.Join(FeedPods(c.Index).Update(pod), FeedPods(c.Index).Update(pod)); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Unsteered(); got != 0 {
		t.Errorf("%d unsteered pods, want none", got)
	}
	if len(c.unsteered.seen) != 2 {
		t.Errorf("%d pending pods are known, want 2", len(c.unsteered.seen))
	}
	if err := FeedPods(c.Index).Replace(nil, ""); err != nil || len(c.unsteered.seen) != 0 {
		t.Errorf("error %v; %d pending pods are known after all are gone", err, len(c.unsteered.seen))
	}
}
