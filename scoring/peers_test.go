package scoring

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
)

// Room held for others is given up when there are no others, when theirs is seen, and
// when nothing else is left.
func TestRoomHeldForOthers(t *testing.T) {
	seenFromOther := func(c *testCluster, uid string) {
		c.SetPod(gpuPod(uid, usual, steeredTo("a", types.UID("other-"+uid))))
	}
	newBusy := func() *testCluster { // more than one of others for one of ours
		c := newCluster(t, nil, gpuNode("a", list(nvidia, "8")))
		c.setReplicas(replicas{ready: replicasOf(2), outstanding: 100}) // one for each of ours
		c.decide(gpuPod("mine", usual))
		return c
	}
	tests := map[string]struct {
		then func(c *testCluster) // after a decision of our own
		want int64
	}{
		"while it is unseen": {func(*testCluster) {}, 2},
		"seen": {func(c *testCluster) {
			c.SetPod(gpuPod("mine", usual, steeredTo("a", "mine")))
		}, 1},
		"theirs seen":       {func(c *testCluster) { seenFromOther(c, "theirs") }, 2},
		"two of theirs":     {func(c *testCluster) { seenFromOther(c, "x"); seenFromOther(c, "y") }, 3},
		"then ours as well": {func(c *testCluster) { seenFromOther(c, "x"); c.SetPod(gpuPod("mine", usual, steeredTo("a", "mine"))) }, 2},
		"never created":     {func(c *testCluster) { c.clock = c.clock.Add(c.Index.cfg.InFlight.ReservationTTL.Duration); c.Size() }, 0},
		"decided again": {func(c *testCluster) {
			c.Decide(t.Context(), Request{Pod: gpuPod("mine", usual), Namespace: "team", UID: "second", FirstUID: "mine"})
		}, 2},
		"a dry run": {func(c *testCluster) {
			c.Decide(t.Context(), Request{Pod: gpuPod("trial", usual), Namespace: "team", UID: "trial", DryRun: true})
		}, 2},
		"the last room": {func(c *testCluster) {
			for i := range 6 {
				if d := c.decide(gpuPod(fmt.Sprint(i), usual)); d.Target() != "a" {
					t.Errorf("pod %d of 6 gets no node: %s", i, d.Reason)
				}
			}
		}, 8}, // 6, mine, and one held again
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newBusy()
			tc.then(c)
			if got := c.usedOn("a"); got != tc.want {
				t.Errorf("%d GPUs used, want %d", got, tc.want)
			}
		})
	}
}

// A forged annotation in a namespace that did not opt in says nothing of replicas, and
// neither does what is not of a burst.
func TestOthersCount(t *testing.T) {
	c := newCluster(t, nil, gpuNode("a", list(nvidia, "64")))
	theirs := func(uid string, options ...podOption) {
		c.SetPod(gpuPod(uid, usual, append([]podOption{steeredTo("a", types.UID("other-"+uid))}, options...)...))
	}
	late := func(p *corev1.Pod) {
		p.CreationTimestamp.Time = testStart.Add(-c.Index.cfg.InFlight.ReservationTTL.Duration)
	}
	theirs("one by one")
	for i := range burstDecisions {
		c.decide(gpuPod(fmt.Sprint("mine", i), list(nvidia, "1")))
	}
	theirs("elsewhere", func(p *corev1.Pod) { p.Namespace = "elsewhere" })
	c.SetPod(gpuPod("no GPU", list("cpu", "1"), steeredTo("a", "z")))
	theirs("late", late)
	if c.replicas.others != 0 {
		t.Errorf("%v of others, want none", c.replicas.others)
	}
	theirs("of the burst")
	theirs("of the burst", on("a"))
	if c.replicas.others != 1 {
		t.Errorf("%v of others, want 1", c.replicas.others)
	}
	c.SetPod(gpuPod("mine", usual, steeredTo("a", "mine0"))) // 15 more are unseen
	theirs("after the burst")
	if c.replicas.own != 0 || c.replicas.others != 1 {
		t.Errorf("%v of ours and %v of others, want 0 and 1", c.replicas.own, c.replicas.others)
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
		"five":                               {replicas: 5, want: maxPerDecision},
		"unknown":                            {want: 0},
		"unknown, some of others":            {own: 10, others: 10, want: 0},
		"unknown, many of others":            {own: 50, others: 50, want: 1},
		"unknown, none of others":            {own: 200, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := replicas{ready: replicasOf(tc.replicas)}
			for range tc.own {
				p.noteBurst(true)
			}
			for range tc.others {
				p.noteBurst(false)
			}
			if got := p.perDecision(); got != tc.want {
				t.Errorf("%d decisions of others for one of ours, want %d", got, tc.want)
			}
		})
	}
}

// The replicas are the ready pods with the webhook's labels in its namespace: nobody else
// can pretend to be one.
func TestReplicas(t *testing.T) {
	replica := func(uid string, options ...podOption) *corev1.Pod {
		p := &corev1.Pod{}
		p.UID, p.Name, p.Namespace = types.UID(uid), uid, "own"
		p.Labels = map[string]string{config.LabelName: config.WebhookPodName, config.LabelComponent: config.WebhookPodComponent}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		for _, o := range options {
			o(p)
		}
		return p
	}
	unready := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	c := newCluster(t, nil)
	c.SetPod(replica("namespace unknown", func(p *corev1.Pod) { p.Namespace = "" }))
	c.SetOwnNamespace("own")
	c.SetPod(replica("a", on("n")))
	c.SetPod(replica("b", on("n")))
	c.SetPod(replica("c", on("n")))
	c.SetPod(replica("d", on("n")))
	c.SetPod(replica("a tenant's", func(p *corev1.Pod) { p.Namespace = "team" }))
	c.SetPod(replica("another program", func(p *corev1.Pod) { p.Labels[config.LabelComponent] = "other" }))
	c.SetPod(replica("starting", func(p *corev1.Pod) { p.Status.Conditions = nil }))
	want := func(uids ...types.UID) {
		t.Helper()
		if got := c.replicas.ready; !got.Equal(sets.New(uids...)) {
			t.Errorf("replicas are %v, want %v", sets.List(got), uids)
		}
	}
	want("a", "b", "c", "d")
	c.SetPod(replica("b", on("n"), unready))
	c.SetPod(replica("c", on("n"), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: testStart} }))
	want("a", "d")
	c.DeletePod("d")
	want("a")
	if err := FeedPods(c.Index).Replace(nil, ""); err != nil { // after a gap in the watch
		t.Fatal(err)
	}
	want()
}

// Room that is only held goes to whoever fits nowhere else, however many decide at
// the same time, and no GPU is given away twice.
func TestParallelDecisionsGetTheLastRoom(t *testing.T) {
	const nodes, pods = 50, 500
	for range 5 {
		c := newCluster(t, nil)
		for i := range nodes {
			c.SetNode(gpuNode(fmt.Sprintf("n%d", i), list(nvidia, strconv.Itoa(gpusOfNode))))
		}
		c.setReplicas(replicas{ready: replicasOf(4), outstanding: 100})
		var group sync.WaitGroup
		targets := make([]string, pods)
		for i := range pods {
			group.Go(func() {
				request := Request{Pod: gpuPod("p", list(nvidia, "1")), Namespace: "team", UID: types.UID(fmt.Sprint(i))}
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
	c := newCluster(t, nil, gpuNode("preferred", list(nvidia, "8"), labelled("zone", "a")))
	for i := range 4 {
		c.SetNode(gpuNode(fmt.Sprint("other", i), list(nvidia, "8"), labelled("zone", "b")))
	}
	c.setReplicas(replicas{ready: replicasOf(2), outstanding: 100})
	for i := range 8 {
		if d := c.decide(gpuPod(fmt.Sprint("p", i), usual, preferring(50, "zone", "a"))); d.Target() != "preferred" {
			t.Errorf("pod %d of 8 is steered to %s", i, d.Target())
		}
	}
}

// For the pods of half a list no room is held: the lists make up for that many.
func TestNoRoomHeldForFew(t *testing.T) {
	c := newCluster(t, func(cfg *config.Configuration) { cfg.Weights.MaxTerms = 4 })
	for i := range 8 {
		c.SetNode(gpuNode(fmt.Sprint("n", i), list(nvidia, "8")))
	}
	c.setReplicas(replicas{ready: replicasOf(2)}) // one for each of ours
	for i := range 17 {
		c.decide(gpuPod(fmt.Sprint("p", i), usual))
	}
	var used int64
	for i := range 8 {
		used += c.usedOn(fmt.Sprint("n", i))
	}
	if used != 18 { // ours, and the 17th of theirs: 2 nodes have 16 GPUs
		t.Errorf("%d GPUs taken or held, want 18", used)
	}
}

// What fits nowhere, or may not go there, gets nobody's room.
func TestRoomHeldStays(t *testing.T) {
	c := newCluster(t, nil, gpuNode("a", list(nvidia, "2")), gpuNode("b", list(nvidia, "2")))
	c.setReplicas(replicas{ready: replicasOf(4), outstanding: 100})
	c.decide(gpuPod("mine", usual)) // and two more held, one on each node
	before := len(c.replicas.held)
	if before == 0 {
		t.Fatal("nothing is held: the test shows nothing")
	}
	for name, pod := range map[string]*corev1.Pod{
		"too large": gpuPod("huge", list(nvidia, "4")),
		"elsewhere": gpuPod("elsewhere", list(nvidia, "2"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "x"} }),
	} {
		if d := c.decide(pod); d.Reason != ReasonNothingFits || len(c.replicas.held) != before {
			t.Errorf("%s: %s, and room held for %d others, before for %d", name, d.Reason, len(c.replicas.held), before)
		}
	}
}
