package agreement

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/agreement/cluster"
)

// With equal weights the scheduler's own opinion decides among the listed nodes,
// which spreads; a node that is not listed still never wins.
func TestEqualWeights(t *testing.T) {
	r := newRealScheduler(t, nil)
	nodes := bigNodes("a", "b", "c")
	running := []*corev1.Pod{smallPod("first", "8", "a"), smallPod("second", "8", "a"), smallPod("third", "1", "b")}
	pod := smallPod("new", "1", "")
	d := decide(t, func(c *config.Configuration) {
		c.Weights.Weighting, c.Weights.MaxTerms = config.WeightingEqual, 2
	}, nodes, running, pod)
	if len(d.Ranking) != 2 || d.Ranking[0].Weight != d.Ranking[1].Weight {
		t.Fatalf("ranking %+v, want a and b with one weight", d.Ranking)
	}
	wantPick(t, r, nodes, running, stored(pod, d), "b")
	for i := range 7 { // until b is full
		running = append(running, smallPod(fmt.Sprintf("on-b-%d", i), "8", "b"))
	}
	wantPick(t, r, nodes, running, stored(pod, d), "a")
}

// The scheduler's default spreading, which our neutral constraint switches off,
// beats the chain before the first node is full. This is why the constraint is
// there, and what spreading.default Keep costs.
func TestDefaultSpreadingBeatsTheChain(t *testing.T) {
	for mode, staysUntilFull := range map[config.DefaultSpreading]bool{config.SpreadingNeutralize: true, config.SpreadingKeep: false} {
		t.Run(string(mode), func(t *testing.T) {
			r := newRealScheduler(t, nil)
			labels := map[string]string{"app": "x"}
			set := &appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Team, Name: "x"},
				Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
			}
			if err := r.informers.Apps().V1().ReplicaSets().Informer().GetIndexer().Add(set); err != nil {
				t.Fatal(err)
			}
			replica := func(name, node string) *corev1.Pod {
				p := smallPod(name, "1", node)
				p.Labels = labels
				p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
				return p
			}
			nodes := bigNodes("a", "b", "c")
			var running []*corev1.Pod
			onFirst := 0
			for node := "a"; node == "a" && onFirst < 8; onFirst++ {
				running = append(running, replica(fmt.Sprintf("copy-%d", onFirst), "a"))
				if onFirst == 7 {
					continue
				}
				pod := replica("new", "")
				d := decide(t, func(c *config.Configuration) { c.Spreading.Default = mode }, nodes, running, pod)
				r.load(t, nodes, defaulted(running))
				node, _ = r.consider(t, stored(pod, d)).pick(t)
			}
			if full := onFirst == 8; full != staysUntilFull {
				t.Errorf("the replicas leave the first node when it has %d of 8", onFirst)
			}
		})
	}
}

// Late steering in mode Always puts the late term beside the ranking. Where the
// ranking no longer helps, since all its nodes are full, the pod joins its kind
// instead of opening an empty node.
func TestLateTermBesideTheRanking(t *testing.T) {
	for mode, want := range map[config.LateMode]string{config.LateWhenNothingFits: "b", config.LateAlways: "c"} {
		t.Run(string(mode), func(t *testing.T) {
			r := newRealScheduler(t, nil)
			nodes := bigNodes("a", "b", "c")
			change := func(c *config.Configuration) { c.LateSteering.Mode, c.Weights.MaxTerms = mode, 1 }
			running := []*corev1.Pod{smallPod("first", "1", "a")}
			pod := smallPod("new", "1", "")
			d := decide(t, change, nodes, running, pod)
			wantPick(t, r, nodes, running, stored(pod, d), "a")
			for i := range 7 {
				running = append(running, smallPod(fmt.Sprintf("on-a-%d", i), "1", "a"))
			}
			// A pod of the same kind, with the same decision, runs on c.
			running = append(running, stored(smallPod("kin", "8", "c"), d))
			wantPick(t, r, nodes, running, stored(pod, d), want)
		})
	}
}
