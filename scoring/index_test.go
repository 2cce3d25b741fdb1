package scoring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// usedOn returns the GPUs in use on a node.
func (c *testCluster) usedOn(node string) int64 {
	for _, s := range c.snapshot().nodes {
		if s.name == node {
			return s.used.requests.get(nvidia)
		}
	}
	return -1
}

func TestIndexCountsLikeTheScheduler(t *testing.T) {
	four := list(nvidia, "4")
	tests := map[string]struct {
		pod  *corev1.Pod
		want int64
	}{
		"running":                         {gpuPod("p", four, on("n")), 4},
		"bound, image pending":            {gpuPod("p", four, on("n"), phase(corev1.PodPending)), 4},
		"unknown phase":                   {gpuPod("p", four, on("n"), phase(corev1.PodUnknown)), 4},
		"terminating":                     {gpuPod("p", four, on("n"), terminating), 4},
		"succeeded":                       {gpuPod("p", four, on("n"), phase(corev1.PodSucceeded)), 0},
		"failed":                          {gpuPod("p", four, on("n"), phase(corev1.PodFailed)), 0},
		"succeeded, terminating":          {gpuPod("p", four, on("n"), phase(corev1.PodSucceeded), terminating), 0},
		"pending":                         {gpuPod("p", four), 0},
		"nominated":                       {gpuPod("p", four, func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }), 4},
		"on another node":                 {gpuPod("p", four, on("m")), 0},
		"DaemonSet":                       {gpuPod("p", four, on("n"), ownedByDaemonSet), 4},
		"target":                          {gpuPod("p", four, steeredTo("n", "u")), 4},
		"bound elsewhere than its target": {gpuPod("p", four, steeredTo("n", "u"), on("m")), 0},
		"forged target, no term of ours": {gpuPod("p", four, func(p *corev1.Pod) {
			p.Annotations = map[string]string{config.AnnotationTarget: "n"}
		}), 0},
		"target of a gated pod": {gpuPod("p", four, steeredTo("n", "u"), func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}}
		}), 0},
		"target of another scheduler's pod":       {gpuPod("p", four, steeredTo("n", "u"), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }), 0},
		"target in a namespace without the label": {gpuPod("p", four, steeredTo("n", "u"), func(p *corev1.Pod) { p.Namespace = "other" }), 0},
		"target of an unschedulable pod": {gpuPod("p", four, steeredTo("n", "u"), func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		}), 0},
		"old target": {gpuPod("p", four, steeredTo("n", "u"), func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(testStart.Add(-2 * time.Minute))
		}), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			node, other := gpuNode("n", list(nvidia, "8")), gpuNode("m", list(nvidia, "8"))
			after := newCluster(t, nil, node, other, tc.pod)
			before := newCluster(t, nil, tc.pod, other, node)
			if a, b := after.usedOn("n"), before.usedOn("n"); a != tc.want || b != tc.want {
				t.Errorf("used %d, and %d when the pod comes before the node, want %d", a, b, tc.want)
			}
			after.DeletePod(tc.pod.UID)
			if got := after.usedOn("n"); got != 0 {
				t.Errorf("used %d after the pod is gone", got)
			}
		})
	}
}

func TestIndexNodeComesBack(t *testing.T) {
	c := newCluster(t, nil, gpuNode("n", list(nvidia, "8")), gpuPod("p", list(nvidia, "3"), on("n")))
	c.DeleteNode("n")
	if got := c.usedOn("n"); got != -1 {
		t.Fatalf("deleted node still listed with %d used", got)
	}
	c.SetNode(gpuNode("n", list(nvidia, "4")))
	if got := c.usedOn("n"); got != 3 {
		t.Errorf("used %d on the recreated node, want 3", got)
	}
}

// A reflector lists everything again after a gap in the watch: what is not there any
// more is gone, and the rest stays as it is.
func TestFeedsReplace(t *testing.T) {
	c := newCluster(t, nil)
	nodes, pods, namespaces := FeedNodes(c.Index), FeedPods(c.Index), FeedNamespaces(c.Index)
	replace := func(f *Feed, objects ...any) {
		t.Helper()
		if err := f.Replace(objects, "1"); err != nil || !f.HasSynced() {
			t.Fatalf("error %v, synced %v", err, f.HasSynced())
		}
	}
	if nodes.HasSynced() || pods.HasSynced() || namespaces.HasSynced() {
		t.Error("synced before the first list")
	}
	replace(namespaces, namespace("team", true), namespace("gone", true))
	replace(nodes, gpuNode("n", list(nvidia, "8")), gpuNode("gone", list(nvidia, "8")))
	replace(pods, gpuPod("p", list(nvidia, "3"), on("n")), gpuPod("gone", list(nvidia, "2"), on("n")))
	if got := c.usedOn("n"); got != 5 {
		t.Errorf("used %d, want 5", got)
	}
	renewed := gpuPod("p", list(nvidia, "4"), on("n"))
	renewed.UID = "p-again"
	replace(namespaces, namespace("team", true))
	replace(nodes, gpuNode("n", list(nvidia, "8")))
	replace(pods, renewed)
	if got := c.usedOn("n"); got != 4 {
		t.Errorf("used %d, want 4", got)
	}
	if size := c.Size(); size.Nodes != 1 || size.Pods != 1 || c.ledger.enabled["gone"] || !c.ledger.enabled["team"] {
		t.Errorf("size %+v, namespaces %v", size, c.ledger.enabled)
	}
	for name, err := range map[string]error{"add": pods.Add(namespace("team", true)), "update": nodes.Update(renewed), "delete": namespaces.Delete(renewed.Spec)} {
		if err == nil {
			t.Errorf("%s: no error for an object of another kind", name)
		}
	}
}

// Heartbeats and status changes that move no usage leave what decisions read as it
// is.
func TestIndexIgnoresHeartbeats(t *testing.T) {
	node, pod := gpuNode("n", list(nvidia, "8"), withImage("a:1", 1)), gpuPod("p", list(nvidia, "3"), on("n"))
	c := newCluster(t, nil, node, pod)
	incoming := gpuPod("new", list(nvidia, "1"))
	demand, _ := NewDemand(incoming, c.Scorer.cfg.Resources)
	seen := func() any { return c.viewOf(incoming, &demand).pool.tree }
	before := seen()
	beat := node.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	beat.Status.Conditions = append(beat.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMemoryPressure})
	c.SetNode(beat)
	status := pod.DeepCopy()
	status.Status.PodIP = "10.0.0.1"
	c.SetPod(status)
	if seen() != before {
		t.Error("the pool changed")
	}
	beat = beat.DeepCopy()
	beat.Status.Allocatable[nvidia] = resource.MustParse("7")
	c.SetNode(beat)
	if seen() == before {
		t.Error("a change of allocatable was missed")
	}
}

// Whatever the order of events, the index equals one built from the final state.
func TestIndexEqualsRebuild(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		c := newCluster(t, nil)
		nodes, pods := map[string]*corev1.Node{}, map[string]*corev1.Pod{}
		for range 150 {
			randomEvent(random, c, nodes, pods)
		}
		rebuilt := newCluster(t, nil)
		rebuilt.clock = c.clock
		rebuilt.synced.Store(false) // ages count from creation, as after a restart
		for _, p := range pods {
			rebuilt.SetPod(p)
		}
		for _, n := range nodes {
			rebuilt.SetNode(n)
		}
		if diff := cmp.Diff(describe(rebuilt), describe(c)); diff != "" {
			t.Fatalf("seed %d (-rebuilt +index):\n%s", seed, diff)
		}
	}
}

func randomEvent(random *rand.Rand, c *testCluster, nodes map[string]*corev1.Node, pods map[string]*corev1.Pod) {
	name := "n" + strconv.Itoa(random.IntN(3))
	uid := "p" + strconv.Itoa(random.IntN(6))
	switch random.IntN(8) {
	case 0:
		nodes[name] = gpuNode(name, list(nvidia, strconv.Itoa(8+random.IntN(90))))
		c.SetNode(nodes[name])
	case 1:
		delete(nodes, name)
		c.DeleteNode(name)
	case 2:
		delete(pods, uid)
		c.DeletePod(gpuPod(uid, nil).UID)
	case 3:
		c.clock = c.clock.Add(time.Duration(random.IntN(20)) * time.Second)
	case 4:
		// The same name with a new UID: a list after a gap.
		if old := pods[uid]; old != nil {
			renewed := old.DeepCopy()
			renewed.UID += types.UID("-" + strconv.FormatInt(random.Int64(), 36))
			renewed.CreationTimestamp = metav1.NewTime(c.clock)
			delete(pods, uid)
			pods[string(renewed.UID)] = renewed
			c.DeletePod(old.UID)
			c.SetPod(renewed)
		}
	case 5, 6:
		if pods[uid] == nil {
			options := [][]podOption{{}, {on(name)}, {steeredTo(name, "u")}, {func(p *corev1.Pod) { p.Status.NominatedNodeName = name }}}
			pods[uid] = gpuPod(uid, list(nvidia, strconv.Itoa(random.IntN(4)), "cpu", strconv.Itoa(random.IntN(5))), options[random.IntN(len(options))]...)
			pods[uid].CreationTimestamp = metav1.NewTime(c.clock)
			c.SetPod(pods[uid])
		}
	default:
		if pods[uid] != nil {
			pods[uid] = pods[uid].DeepCopy()
			options := []podOption{on(name), terminating, phase(corev1.PodSucceeded)}
			options[random.IntN(len(options))](pods[uid])
			c.SetPod(pods[uid])
		}
	}
}

// describe lists what decisions depend on.
func describe(c *testCluster) map[string]string {
	out := map[string]string{}
	snapshot := c.snapshot()
	for _, s := range snapshot.nodes {
		text := ""
		for _, a := range s.used.requests {
			text += string(a.name) + "=" + strconv.FormatInt(a.value, 10) + " "
		}
		for _, a := range s.used.terminating {
			text += "terminating of " + string(a.name) + "=" + strconv.FormatInt(a.value, 10) + " "
		}
		for _, a := range s.used.occupants {
			text += "occupants of " + string(a.name) + "=" + strconv.FormatInt(a.value, 10) + " "
		}
		out[s.name] = text + "pods=" + strconv.FormatInt(s.used.pods, 10) +
			" cpu=" + strconv.FormatInt(s.used.scoringCPU, 10) + " memory=" + strconv.FormatInt(s.used.scoringMemory, 10)
	}
	out["per GPU"] = strconv.FormatInt(snapshot.perGPU.cpu, 10) + " " + strconv.FormatInt(snapshot.perGPU.memory, 10)
	return out
}

// More given back than taken is a bug: it is counted, and the observer is told which node
// it was.
func TestNegativeUsage(t *testing.T) {
	c := newCluster(t, nil, gpuNode("n", list(nvidia, "8")))
	var told []string
	c.Observe(Observers{Negative: func(node string) { told = append(told, node) }})
	c.SetPod(gpuPod("p", list(nvidia, "1"), on("n")))
	if len(told) != 0 || c.Negatives() != 0 {
		t.Errorf("told of %v, counted %d, before anything is wrong", told, c.Negatives())
	}
	c.Index.mu.Lock()
	c.usage.apply(-1, charge{node: "n", load: load{requests: amounts{{nvidia, 2}}, pods: 1}})
	c.Index.mu.Unlock()
	c.DeleteNode("other") // whoever unlocks next tells
	if !slices.Equal(told, []string{"n"}) || c.Negatives() != 1 {
		t.Errorf("told of %v, counted %d, want [n] and 1", told, c.Negatives())
	}
}

// A dry run, and everything else that only looks, leaves the index as it is: it ends no
// reservation, makes and drops no pool and gives up no room that is held for others.
func TestLookingChangesNothing(t *testing.T) {
	c := newCluster(t, nil, gpuNode("n", list(nvidia, "4")))
	c.setReplicas(replicas{ready: replicasOf(2), outstanding: 100})
	c.decide(gpuPod("held", list(nvidia, "1"))) // and one for the other replica
	c.decide(gpuPod("again", list(nvidia, "1")))
	state := func() string {
		return fmt.Sprint(len(c.reservations.byUID), len(c.pools.byKind), c.pools.decisions, len(c.replicas.held), c.usage.of("n").used)
	}
	before := state()
	look := func(gpus string) Decision {
		pod := gpuPod("looks", list(nvidia, gpus))
		c.Explain(t.Context(), Request{Pod: pod, Namespace: "team"})
		c.Predict(pod)
		return c.Decide(t.Context(), Request{Pod: pod, Namespace: "team", UID: "looks", DryRun: true})
	}
	// The two reservations leave 2 of 4 GPUs, which are held for the other replica.
	for _, gpus := range []string{"1", "2"} {
		if d := look(gpus); d.Target() != "n" {
			t.Errorf("%s GPUs: %+v", gpus, d)
		}
		if now := state(); now != before {
			t.Errorf("%s GPUs: %s, before %s", gpus, now, before)
		}
	}
	c.clock = c.clock.Add(c.Index.cfg.InFlight.ReservationTTL.Duration)
	if d := look("4"); d.Target() != "n" {
		t.Errorf("after all reservations are over: %+v", d)
	}
	if now := state(); now != before {
		t.Errorf("after all reservations are over: %s, before %s", now, before)
	}
}
