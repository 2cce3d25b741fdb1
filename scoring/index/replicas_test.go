package index_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/watch"
)

// Room held for others is given up when there are no others, when theirs is seen, and
// when nothing else is left.
func TestRoomHeldForOthers(t *testing.T) {
	seenFromOther := func(c *clustertest.Cluster, uid string) {
		c.SetPod(clustertest.GPUPod(uid, clustertest.Usual, clustertest.SteeredTo("a", types.UID("other-"+uid))))
	}
	newBusy := func() *clustertest.Cluster { // more than one of others for one of ours
		c := clustertest.New(t, nil, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "8")))
		c.SetReplicas(2, 100) // one for each of ours
		c.DecideOn(clustertest.GPUPod("mine", clustertest.Usual))
		return c
	}
	tests := map[string]struct {
		then func(c *clustertest.Cluster) // after a decision of our own
		want int64
	}{
		"while it is unseen": {func(*clustertest.Cluster) {}, 2},
		"seen": {func(c *clustertest.Cluster) {
			c.SetPod(clustertest.GPUPod("mine", clustertest.Usual, clustertest.SteeredTo("a", "mine")))
		}, 1},
		"theirs seen":   {func(c *clustertest.Cluster) { seenFromOther(c, "theirs") }, 2},
		"two of theirs": {func(c *clustertest.Cluster) { seenFromOther(c, "x"); seenFromOther(c, "y") }, 3},
		"then ours as well": {func(c *clustertest.Cluster) {
			seenFromOther(c, "x")
			c.SetPod(clustertest.GPUPod("mine", clustertest.Usual, clustertest.SteeredTo("a", "mine")))
		}, 2},
		"never created": {func(c *clustertest.Cluster) {
			c.Clock = c.Clock.Add(c.Config.InFlight.ReservationTTL.Duration)
			c.Size()
		}, 0},
		"decided again": {func(c *clustertest.Cluster) {
			c.Decide(t.Context(), scoring.Request{Pod: clustertest.GPUPod("mine", clustertest.Usual), Namespace: "team", UID: "second", FirstUID: "mine"})
		}, 2},
		"a dry run": {func(c *clustertest.Cluster) {
			c.Decide(t.Context(), scoring.Request{Pod: clustertest.GPUPod("trial", clustertest.Usual), Namespace: "team", UID: "trial", DryRun: true})
		}, 2},
		"the last room": {func(c *clustertest.Cluster) {
			for i := range 6 {
				if d := c.DecideOn(clustertest.GPUPod(fmt.Sprint(i), clustertest.Usual)); d.Target() != "a" {
					t.Errorf("pod %d of 6 gets no node: %s", i, d.Reason)
				}
			}
		}, 8}, // 6, mine, and one held again
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newBusy()
			tc.then(c)
			if got := c.UsedOn("a"); got != tc.want {
				t.Errorf("%d GPUs used, want %d", got, tc.want)
			}
		})
	}
}

// A forged annotation in a namespace that did not opt in says nothing of replicas, and
// neither does what is not of a burst.
func TestOthersCount(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "64")))
	theirs := func(uid string, options ...clustertest.PodOption) {
		c.SetPod(clustertest.GPUPod(uid, clustertest.Usual, append([]clustertest.PodOption{clustertest.SteeredTo("a", types.UID("other-"+uid))}, options...)...))
	}
	late := func(p *corev1.Pod) {
		p.CreationTimestamp.Time = clustertest.Start.Add(-c.Config.InFlight.ReservationTTL.Duration)
	}
	theirs("one by one")
	for i := range index.BurstDecisions {
		c.DecideOn(clustertest.GPUPod(fmt.Sprint("mine", i), clustertest.List(clustertest.NVIDIA, "1")))
	}
	theirs("elsewhere", func(p *corev1.Pod) { p.Namespace = "elsewhere" })
	c.SetPod(clustertest.GPUPod("no GPU", clustertest.List("cpu", "1"), clustertest.SteeredTo("a", "z")))
	theirs("late", late)
	if _, others := c.BurstPods(); others != 0 {
		t.Errorf("%v of others, want none", others)
	}
	theirs("of the burst")
	theirs("of the burst", clustertest.On("a"))
	if _, others := c.BurstPods(); others != 1 {
		t.Errorf("%v of others, want 1", others)
	}
	c.SetPod(clustertest.GPUPod("mine", clustertest.Usual, clustertest.SteeredTo("a", "mine0"))) // 15 more are unseen
	theirs("after the burst")
	if own, others := c.BurstPods(); own != 0 || others != 1 {
		t.Errorf("%v of ours and %v of others, want 0 and 1", own, others)
	}
}

func TestPerDecision(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas, own, others int
		want                  int
	}{
		"alone":                              {replicas: 1, want: 0},
		"two":                                {replicas: 2, want: 1},
		"two, the first pods are ours":       {replicas: 2, own: 40, want: 1},
		"two, uneven":                        {replicas: 2, own: 180, others: 60, want: 1},
		"two, the other one is not called":   {replicas: 2, own: 240, others: 1, want: 0},
		"two, only the other one was called": {replicas: 2, others: 240, want: 1},
		"five":                               {replicas: 5, want: index.MaxPerDecision},
		"unknown":                            {want: 0},
		"unknown, some of others":            {own: 10, others: 10, want: 0},
		"unknown, many of others":            {own: 50, others: 50, want: 1},
		"unknown, none of others":            {own: 200, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := index.PerDecision(tc.replicas, tc.own, tc.others); got != tc.want {
				t.Errorf("%d decisions of others for one of ours, want %d", got, tc.want)
			}
		})
	}
}

// The replicas are the ready pods with the webhook's labels in its namespace: nobody else
// can pretend to be one.
func TestReplicas(t *testing.T) {
	replica := func(uid string, options ...clustertest.PodOption) *corev1.Pod {
		p := &corev1.Pod{}
		p.UID, p.Name, p.Namespace = types.UID(uid), uid, "own"
		p.Labels = map[string]string{config.LabelName: config.WebhookPodName, config.LabelComponent: config.WebhookPodComponent}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		for _, o := range options {
			o(p)
		}
		return p
	}
	notReady := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	c := clustertest.New(t, nil)
	c.SetPod(replica("namespace unknown", func(p *corev1.Pod) { p.Namespace = "" }))
	c.SetOwnNamespace("own")
	c.SetPod(replica("a", clustertest.On("n")))
	c.SetPod(replica("b", clustertest.On("n")))
	c.SetPod(replica("c", clustertest.On("n")))
	c.SetPod(replica("d", clustertest.On("n")))
	c.SetPod(replica("a tenant's", func(p *corev1.Pod) { p.Namespace = "team" }))
	c.SetPod(replica("another program", func(p *corev1.Pod) { p.Labels[config.LabelComponent] = "other" }))
	c.SetPod(replica("starting", func(p *corev1.Pod) { p.Status.Conditions = nil }))
	want := func(uids ...types.UID) {
		t.Helper()
		if got := c.Replicas(); !got.Equal(sets.New(uids...)) {
			t.Errorf("replicas are %v, want %v", sets.List(got), uids)
		}
	}
	want("a", "b", "c", "d")
	c.SetPod(replica("b", clustertest.On("n"), notReady))
	c.SetPod(replica("c", clustertest.On("n"), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: clustertest.Start} }))
	want("a", "d")
	c.DeletePod("d")
	want("a")
	if err := watch.Pods(c.Index).Replace(nil, ""); err != nil { // after a gap in the watch
		t.Fatal(err)
	}
	want()
}

// Room that is only held goes to whoever fits nowhere else, however many decide at
// the same time, and no GPU is given away twice.
func TestParallelDecisionsGetTheLastRoom(t *testing.T) {
	const nodes, pods = 50, 500
	for range 5 {
		c := clustertest.New(t, nil)
		for i := range nodes {
			c.SetNode(clustertest.GPUNode(fmt.Sprintf("n%d", i), clustertest.List(clustertest.NVIDIA, strconv.Itoa(gpusOfNode))))
		}
		c.SetReplicas(4, 100)
		var group sync.WaitGroup
		targets := make([]string, pods)
		for i := range pods {
			group.Go(func() {
				request := scoring.Request{Pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1")), Namespace: "team", UID: types.UID(fmt.Sprint(i))}
				decision := c.Decide(t.Context(), request)
				targets[i] = decision.Target()
			})
		}
		group.Wait()
		placed := map[string]int{}
		for _, target := range targets {
			placed[target]++
		}
		if without := placed[""]; without != pods-nodes*gpusOfNode {
			t.Errorf("%d of %d pods got no node, want %d", without, pods, pods-nodes*gpusOfNode)
		}
		delete(placed, "")
		for name, n := range placed {
			if n > gpusOfNode {
				t.Errorf("%d pods are expected on %s, which has %d GPUs", n, name, gpusOfNode)
			}
		}
	}
}

// Room held for others must not push a pod off the nodes that its author prefers.
func TestPreferenceBeforeRoomHeld(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("preferred", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Labelled("zone", "a")))
	for i := range 4 {
		c.SetNode(clustertest.GPUNode(fmt.Sprint("other", i), clustertest.List(clustertest.NVIDIA, "8"), clustertest.Labelled("zone", "b")))
	}
	c.SetReplicas(2, 100)
	for i := range 8 {
		if d := c.DecideOn(clustertest.GPUPod(fmt.Sprint("p", i), clustertest.Usual, clustertest.Preferring(50, "zone", "a"))); d.Target() != "preferred" {
			t.Errorf("pod %d of 8 is steered to %s", i, d.Target())
		}
	}
}

// For the pods of half a list no room is held: the lists make up for that many.
func TestNoRoomHeldForFew(t *testing.T) {
	c := clustertest.New(t, func(cfg *config.Configuration) { cfg.Weights.MaxTerms = 4 })
	for i := range 8 {
		c.SetNode(clustertest.GPUNode(fmt.Sprint("n", i), clustertest.List(clustertest.NVIDIA, "8")))
	}
	c.SetReplicas(2, 0) // one for each of ours
	for i := range 17 {
		c.DecideOn(clustertest.GPUPod(fmt.Sprint("p", i), clustertest.Usual))
	}
	var used int64
	for i := range 8 {
		used += c.UsedOn(fmt.Sprint("n", i))
	}
	if used != 18 { // ours, and the 17th of theirs: 2 nodes have 16 GPUs
		t.Errorf("%d GPUs taken or held, want 18", used)
	}
}

// What fits nowhere, or may not go there, gets nobody's room.
func TestRoomHeldStays(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("a", clustertest.List(clustertest.NVIDIA, "2")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "2")))
	c.SetReplicas(4, 100)
	c.DecideOn(clustertest.GPUPod("mine", clustertest.Usual)) // and two more held, one on each node
	before := c.Held()
	if before == 0 {
		t.Fatal("nothing is held: the test shows nothing")
	}
	for name, pod := range map[string]*corev1.Pod{
		"too large": clustertest.GPUPod("huge", clustertest.List(clustertest.NVIDIA, "4")),
		"elsewhere": clustertest.GPUPod("elsewhere", clustertest.List(clustertest.NVIDIA, "2"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "x"} }),
	} {
		if d := c.DecideOn(pod); d.Reason != steering.ReasonNothingFits || c.Held() != before {
			t.Errorf("%s: %s, and room held for %d others, before for %d", name, d.Reason, c.Held(), before)
		}
	}
}
