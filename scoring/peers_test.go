package scoring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// burst is pods for half of all nodes, created at once and decided about by several
// replicas, in random order. Each sees a pod when so many others were decided about
// since. Nothing is bound while the burst lasts.
type burst struct {
	replicas, nodes, lag int
	seed                 uint64
	// before are pods of which each replica decided about so many, that were seen and
	// are gone.
	before []int
	// oneByOne: each of them was seen before the next one came.
	oneByOne bool
	// assumeNone switches off what is tested.
	assumeNone bool
	// configure changes the configuration; nil leaves the default one.
	configure func(*config.Configuration)
}

const gpusOfNode = 8

// place returns how many nodes the scheduler takes, and how many pods find no room
// on a listed node that it examines.
func (b burst) place(t *testing.T) (taken, unlisted int) {
	s := scheduler{free: map[string]int{}}
	for i := range b.nodes {
		s.nodes = append(s.nodes, fmt.Sprintf("n%03d", i))
		s.free[s.nodes[i]] = gpusOfNode
	}
	for _, pod := range b.decide(t, s.nodes) {
		if !s.schedule(listedNodes(pod)) {
			unlisted++
		}
	}
	for _, free := range s.free {
		if free < gpusOfNode {
			taken++
		}
	}
	return taken, unlisted
}

// decide returns the pods in the order of their creation.
func (b burst) decide(t *testing.T, nodes []string) (created []*corev1.Pod) {
	random := rand.New(rand.NewPCG(b.seed, 1))
	replicas := make([]*testCluster, b.replicas)
	for r := range replicas {
		replicas[r] = newCluster(t, b.configure)
		for _, name := range nodes {
			replicas[r].SetNode(gpuNode(name, list(nvidia, strconv.Itoa(gpusOfNode))))
		}
		replicas[r].peers.replicas = replicasOf(b.replicas)
	}
	b.replayBefore(replicas)
	seen := 0
	for i := range b.nodes * gpusOfNode / 2 {
		replica := replicas[random.IntN(b.replicas)]
		if b.assumeNone {
			replica.peers = peers{}
		}
		uid := fmt.Sprintf("p%d", i)
		created = append(created, gpuPod(uid, usual, steeredBy(replica.decide(gpuPod(uid, usual)), types.UID(uid))))
		for ; seen < i-b.lag; seen++ {
			for _, r := range replicas {
				r.SetPod(created[seen])
			}
		}
	}
	return created
}

// replicasOf are so many ready pods of the webhook.
func replicasOf(n int) sets.Set[types.UID] {
	replicas := sets.New[types.UID]()
	for i := range n {
		replicas.Insert(types.UID(fmt.Sprint("replica-", i)))
	}
	return replicas
}

// replayBefore lets the replicas decide about the earlier pods, in turn as long as each
// has some left.
func (b burst) replayBefore(replicas []*testCluster) {
	var unseen []*corev1.Pod
	see := func() {
		for _, pod := range unseen {
			for _, r := range replicas {
				r.SetPod(pod)
			}
		}
		for _, pod := range unseen {
			for _, r := range replicas {
				r.DeletePod(pod.UID)
			}
		}
		unseen = nil
	}
	for i := range slices.Max(append(b.before, 0)) {
		for r, calls := range b.before {
			if i >= calls {
				continue
			}
			uid := fmt.Sprintf("before-%d-%d", r, i)
			unseen = append(unseen, gpuPod(uid, usual, steeredBy(replicas[r].decide(gpuPod(uid, usual)), types.UID(uid))))
			if b.oneByOne {
				see()
			}
		}
	}
	see()
}

// A Service gives every connection to one replica. So the calls of pods that come one
// after another all go to the one with the connection, those of a burst to all. And a
// burst that came over a few connections may be shared otherwise than the next one. 240
// pods in 60 nodes and 64 in 16, none seen before the last one is decided about, go to
// half of the nodes, whoever was called before.
func TestBurstAfterUnevenCalls(t *testing.T) {
	for name, before := range map[string]burst{
		"none":                        {},
		"one by one, all to one":      {before: []int{8, 0}, oneByOne: true},
		"one by one, to both":         {before: []int{3, 5}, oneByOne: true},
		"a burst, three of four":      {before: []int{6, 2}},
		"a burst, three of four, too": {before: []int{2, 6}},
		"a burst, seven of eight":     {before: []int{7, 1}},
	} {
		for _, nodes := range []int{16, 60} {
			for _, version := range []string{"1.35", "1.36", "1.37"} {
				t.Run(fmt.Sprintf("%s, %d nodes, %s", name, nodes, version), func(t *testing.T) {
					b := before
					b.before = slices.Clone(before.before) // of eight pods
					for r := range b.before {
						b.before[r] *= nodes / 2
					}
					b.replicas, b.nodes, b.lag = 2, nodes, nodes*gpusOfNode
					b.configure = func(cfg *config.Configuration) { cfg.Scheduler.KubernetesVersion = version }
					for b.seed = range 4 {
						if taken, unlisted := b.place(t); taken > nodes/2 {
							t.Errorf("seed %d: %d nodes taken, want %d; %d pods without a listed node", b.seed, taken, nodes/2, unlisted)
						}
					}
				})
			}
		}
	}
}

// scheduler places pods of one GPU as kube-scheduler does: of the nodes that it
// examines, in a window that moves on, on the first listed one.
type scheduler struct {
	nodes []string
	free  map[string]int
	start int
}

// schedule places a pod. It is false if none of the listed nodes is among those
// examined and free; then the pod goes to the emptiest.
func (s *scheduler) schedule(listed []string) bool {
	cfg := config.Default()
	left, place := examinedNodes(&cfg.Scheduler, len(s.nodes)), s.start
	examined, best := map[string]bool{}, ""
	for i := 0; i < len(s.nodes) && left > 0; i++ {
		name := s.nodes[place%len(s.nodes)]
		place++
		if s.free[name] > 0 {
			left--
			examined[name] = true
			if best == "" || s.free[name] > s.free[best] {
				best = name
			}
		}
	}
	s.start = place % len(s.nodes)
	for _, name := range listed {
		if examined[name] {
			s.free[name]--
			return true
		}
	}
	s.free[best]--
	return false
}

// 400 pods unseen are 200 of each of two replicas. Each thinks 25 nodes full of its own
// and lists 16 from there: up to 41, for 50 nodes' worth of pods. So some find no room
// on a listed node, unless the replicas assume each other. In 100 nodes the scheduler
// examines all, in 200 half of them.
func TestReplicasAssumeEachOther(t *testing.T) {
	for name, tc := range map[string]struct {
		burst
		// alone: it does not need the assumption.
		alone bool
	}{
		"one":               {burst: burst{replicas: 1, nodes: 100, lag: 400}, alone: true},
		"two, a few unseen": {burst: burst{replicas: 2, nodes: 100, lag: 48}, alone: true},
		"two":               {burst: burst{replicas: 2, nodes: 100, lag: 400}},
		"one, 200 nodes":    {burst: burst{replicas: 1, nodes: 200, lag: 400}, alone: true},
		"two, 16 nodes":     {burst: burst{replicas: 2, nodes: 16, lag: 64}, alone: true},
		"two, 60 nodes":     {burst: burst{replicas: 2, nodes: 60, lag: 240}},
		"two, 200 nodes":    {burst: burst{replicas: 2, nodes: 200, lag: 400}},
		"three, 200 nodes":  {burst: burst{replicas: 3, nodes: 200, lag: 400}},
	} {
		t.Run(name, func(t *testing.T) {
			most := tc.nodes / 2
			if tc.nodes > minFeasibleNodes {
				// The calls are shared evenly up to a tenth; and the last pods take a few
				// nodes more, in the part examined.
				most += most * 3 / 20
			}
			// Chance shares the calls of 400 pods so unevenly once in ten times that a few
			// find no room on a listed node. So it is the median that counts.
			const seeds = 5
			var results []int
			for tc.seed = range seeds {
				taken, unlisted := tc.place(t)
				t.Logf("seed %d: %d nodes taken; %d pods without a listed node", tc.seed, taken, unlisted)
				results = append(results, taken)
			}
			slices.Sort(results)
			if results[seeds/2] > most {
				t.Errorf("%v nodes taken, want %d at most in most of them", results, most)
			}
			tc.assumeNone = true
			if taken, _ := tc.place(t); (taken <= most) != tc.alone {
				t.Errorf("%d nodes taken when none assumes the others: the test shows nothing", taken)
			}
		})
	}
}

// Room held for others is given up when there are no others, when theirs is seen, and
// when nothing else is left.
func TestRoomHeldForOthers(t *testing.T) {
	seenFromOther := func(c *testCluster, uid string) {
		c.SetPod(gpuPod(uid, usual, steeredTo("a", types.UID("other-"+uid))))
	}
	newBusy := func() *testCluster { // more than one of others for one of ours
		c := newCluster(t, nil, gpuNode("a", list(nvidia, "8")))
		c.peers = peers{replicas: replicasOf(2), outstanding: 100} // one for each of ours
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
	if c.peers.others != 0 {
		t.Errorf("%v of others, want none", c.peers.others)
	}
	theirs("of the burst")
	theirs("of the burst", on("a"))
	if c.peers.others != 1 {
		t.Errorf("%v of others, want 1", c.peers.others)
	}
	c.SetPod(gpuPod("mine", usual, steeredTo("a", "mine0"))) // 15 more are unseen
	theirs("after the burst")
	if c.peers.own != 0 || c.peers.others != 1 {
		t.Errorf("%v of ours and %v of others, want 0 and 1", c.peers.own, c.peers.others)
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
			p := peers{replicas: replicasOf(tc.replicas)}
			for range tc.own {
				p.note(true)
			}
			for range tc.others {
				p.note(false)
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
		if got := c.peers.replicas; !got.Equal(sets.New(uids...)) {
			t.Errorf("replicas are %v, want %v", sets.List(got), uids)
		}
	}
	want("a", "b", "c", "d")
	c.SetPod(replica("b", on("n"), unready))
	c.SetPod(replica("c", on("n"), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: testStart} }))
	want("a", "d")
	c.DeletePod("d")
	want("a")
	if err := c.PodFeed().Replace(nil, ""); err != nil { // after a gap in the watch
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
		c.peers = peers{replicas: replicasOf(4), outstanding: 100}
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
	c.peers = peers{replicas: replicasOf(2), outstanding: 100}
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
	c.peers = peers{replicas: replicasOf(2)} // one for each of ours
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
	c.peers = peers{replicas: replicasOf(4), outstanding: 100}
	c.decide(gpuPod("mine", usual)) // and two more held, one on each node
	before := len(c.peers.held)
	if before == 0 {
		t.Fatal("nothing is held: the test shows nothing")
	}
	for name, pod := range map[string]*corev1.Pod{
		"too large": gpuPod("huge", list(nvidia, "4")),
		"elsewhere": gpuPod("elsewhere", list(nvidia, "2"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "x"} }),
	} {
		if d := c.decide(pod); d.Reason != ReasonNothingFits || len(c.peers.held) != before {
			t.Errorf("%s: %s, and room held for %d others, before for %d", name, d.Reason, len(c.peers.held), before)
		}
	}
}
