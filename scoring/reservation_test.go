package scoring

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// 500 parallel admissions never take the same GPU twice: exactly as many pods
// are sent to each node as fit.
func TestReserveInParallel(t *testing.T) {
	c := newCluster(t, nil)
	for i := range 100 {
		c.SetNode(gpuNode(fmt.Sprintf("n%d", i), list(nvidia, "4")))
	}
	targets := make([]string, 500)
	var wg sync.WaitGroup
	for i := range targets {
		wg.Go(func() {
			d := c.Decide(t.Context(), Request{Pod: gpuPod("p", list(nvidia, "1")), Namespace: "team", UID: types.UID(fmt.Sprint(i))})
			targets[i] = d.Target()
		})
	}
	wg.Wait()
	perNode := map[string]int{}
	for _, target := range targets {
		perNode[target]++
	}
	if perNode[""] != 100 { // 500 pods, 400 GPUs
		t.Errorf("%d pods without a target, want 100", perNode[""])
	}
	delete(perNode, "")
	for node, n := range perNode {
		if n != 4 {
			t.Errorf("%d pods on %s, want 4", n, node)
		}
	}
}

// One pod's request on its way: reservation, target, bound, gone; counted once
// at every step.
func TestReservationLifeCycle(t *testing.T) {
	c := newCluster(t, nil, gpuNode("n", list(nvidia, "8")))
	pod := gpuPod("p", list(nvidia, "2"))
	expect := func(step string, used int64, reservations int) {
		t.Helper()
		if got := c.usedOn("n"); got != used || c.Size().Reservations != reservations {
			t.Fatalf("%s: %d used and %d reservations, want %d and %d", step, got, c.Size().Reservations, used, reservations)
		}
	}
	c.Decide(t.Context(), Request{Pod: pod, Namespace: "team", UID: "a"})
	expect("decided", 2, 1)
	steeredTo("n", "a")(pod)
	c.SetPod(pod)
	expect("seen", 2, 0)
	on("n")(pod)
	c.SetPod(pod)
	expect("bound", 2, 0)
	c.DeletePod(pod.UID)
	expect("deleted", 0, 0)
}

func TestReservationEnds(t *testing.T) {
	pod := gpuPod("p", list(nvidia, "2"))
	decided := func() *testCluster {
		c := newCluster(t, nil, gpuNode("n", list(nvidia, "8")), gpuNode("m", list(nvidia, "1")))
		if d := c.Decide(t.Context(), Request{Pod: pod, Namespace: "team", UID: "a"}); d.Target() != "n" {
			t.Fatalf("target %q", d.Target())
		}
		return c
	}
	seen := func(options ...podOption) *testCluster {
		c := decided()
		c.SetPod(gpuPod("p", list(nvidia, "2"), append([]podOption{steeredTo("n", "a")}, options...)...))
		return c
	}
	tests := map[string]struct {
		cluster *testCluster
		then    func(*testCluster)
		want    int64
	}{
		"creation failed: until the TTL": {decided(), func(c *testCluster) { c.clock = c.clock.Add(4 * time.Second) }, 2},
		"creation failed: after the TTL": {decided(), func(c *testCluster) { c.clock = c.clock.Add(5 * time.Second) }, 0},
		"decided again: the TTL starts again": {decided(), func(c *testCluster) {
			c.clock = c.clock.Add(4 * time.Second)
			c.Decide(t.Context(), Request{Pod: pod, Namespace: "team", UID: "a"})
			c.clock = c.clock.Add(4 * time.Second)
		}, 2},
		"bound elsewhere":       {seen(), func(c *testCluster) { c.SetPod(gpuPod("p", list(nvidia, "2"), steeredTo("n", "a"), on("m"))) }, 0},
		"target: until its age": {seen(), func(c *testCluster) { c.clock = c.clock.Add(59 * time.Second) }, 2},
		"target: after its age": {seen(), func(c *testCluster) { c.clock = c.clock.Add(60 * time.Second) }, 0},
		"namespace opts out":    {seen(), func(c *testCluster) { c.SetNamespace("team", false) }, 0},
		"namespace opts out and in": {seen(), func(c *testCluster) {
			c.SetNamespace("team", false)
			c.SetNamespace("team", true)
		}, 2},
		"deleted while pending": {seen(), func(c *testCluster) { c.DeletePod("p") }, 0},
		"another pod with the same annotation seen again": {seen(), func(c *testCluster) {
			// The copy's own admission keeps the UID that it carries.
			c.Decide(t.Context(), Request{Pod: gpuPod("copy", list(nvidia, "1")), Namespace: "team", UID: "a"})
			c.SetPod(gpuPod("p", list(nvidia, "2"), steeredTo("n", "a"), func(p *corev1.Pod) { p.Status.Phase = "Pending" }))
		}, 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.then(tc.cluster)
			if got := tc.cluster.usedOn("n"); got != tc.want {
				t.Errorf("used %d, want %d", got, tc.want)
			}
		})
	}
}

func TestServedScheduler(t *testing.T) {
	cfg := config.Default()
	for name, want := range map[string]bool{"": true, "default-scheduler": true, "volcano": false} {
		if got := ServedScheduler(cfg, name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

// Two replicas that see each other's pods late decide twice about the same room.
// The scheduler resolves that by the next terms, and the accounting follows, so
// a burst still fills one node after the other.
//
// Before Kubernetes 1.36 weights fall faster, by 30 % instead of 25 %, so that fewer
// nodes are listed in order. Without the tail behind them the list of 11 nodes would
// end too early for 192 unseen pods: after 88 decisions of its own a replica thinks
// 11 nodes full and lists up to the 22nd, when 176 pods are on their way.
func TestTwoReplicasBurst(t *testing.T) {
	for _, version := range []string{"1.35", "1.37"} {
		for _, lag := range []int{1, 8, 24, 48, 96, 192} {
			t.Run(fmt.Sprintf("%s, each sees the other's pods %d later", version, lag), func(t *testing.T) {
				twoReplicasBurst(t, version, lag)
			})
		}
	}
}

func twoReplicasBurst(t *testing.T, version string, lag int) {
	t.Helper()
	const nodes, pods = 60, 240
	ofVersion := func(cfg *config.Configuration) { cfg.Scheduler.KubernetesVersion = version }
	replicas := [2]*testCluster{newCluster(t, ofVersion), newCluster(t, ofVersion)}
	free := map[string]int{}
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		free[name] = 8
		for _, r := range replicas {
			r.SetNode(gpuNode(name, list(nvidia, "8")))
		}
	}
	var created []*corev1.Pod
	for i := range pods {
		uid := fmt.Sprintf("p%d", i)
		decision := replicas[i%2].decide(gpuPod(uid, usual))
		created = append(created, gpuPod(uid, usual, steeredBy(decision, types.UID(uid))))
		if i >= lag {
			replicas[0].SetPod(created[i-lag])
			replicas[1].SetPod(created[i-lag])
		}
	}
	// The scheduler comes last: nothing is bound while the burst lasts.
	used := map[string]bool{}
	for _, pod := range created {
		node := ""
		for _, name := range listedNodes(pod) {
			if free[name] > 0 {
				node = name
				break
			}
		}
		if node == "" {
			t.Fatalf("no listed node of %s has room: %v", pod.Name, listedNodes(pod))
		}
		free[node]--
		used[node] = true
	}
	if len(used) > pods/8 {
		t.Errorf("%d nodes used, ideal %d", len(used), pods/8)
	}
}

// steeredBy puts a decision's terms on the pod.
func steeredBy(d Decision, admission types.UID) podOption {
	return func(p *corev1.Pod) {
		for _, n := range d.Ranking {
			steeredTo(n.Name, admission)(p)
			terms := nodeAffinityOf(p).PreferredDuringSchedulingIgnoredDuringExecution
			terms[len(terms)-1].Weight = n.Weight
		}
		p.Annotations[config.AnnotationTarget] = d.Target()
	}
}

// The API server calls twice at most. A reinvocation keeps the first UID, the
// place and the target, even when another node would now be better; copies of a
// template that carries our annotation each get a place of their own.
func TestReinvocationAndCopies(t *testing.T) {
	c := newCluster(t, nil, gpuNode("a", list(nvidia, "2")), gpuNode("b", list(nvidia, "2")))
	again := func(uid, first string) Decision {
		return c.Decide(t.Context(), Request{Pod: gpuPod("p", list(nvidia, "1")), Namespace: "team", UID: types.UID(uid), FirstUID: types.UID(first)})
	}
	first := again("u1", "")
	other := map[string]string{"a": "b", "b": "a"}[first.Target()]
	c.SetPod(gpuPod("busy", list(nvidia, "1"), on(other)))
	c.SetPod(gpuPod("busy2", list("cpu", "90"), on(other)))
	if d := again("u2", "u1"); d.UID != "u1" || d.Target() != first.Target() || c.Size().Reservations != 1 {
		t.Errorf("reinvocation: UID %s and target %s, want u1 and %s; %d reservations", d.UID, d.Target(), first.Target(), c.Size().Reservations)
	}
	// From another replica: nothing is known of the first request.
	if d := again("u3", "elsewhere"); d.UID != "elsewhere" || c.Size().Reservations != 2 {
		t.Errorf("reinvocation from another replica: UID %s, %d reservations", d.UID, c.Size().Reservations)
	}
	if d := again("u3", "elsewhere"); d.UID != "elsewhere" || c.Size().Reservations != 2 {
		t.Errorf("its reinvocation: UID %s, %d reservations", d.UID, c.Size().Reservations)
	}
	if d := again("u4", "elsewhere"); d.UID != "u4" || c.Size().Reservations != 3 {
		t.Errorf("copy: UID %s, %d reservations", d.UID, c.Size().Reservations)
	}
	if used := c.usedOn("a") + c.usedOn("b"); used != 4 { // busy and three pods
		t.Errorf("%d GPUs used, want 4", used)
	}
	// A pod in another namespace cannot end a reservation.
	c.SetPod(gpuPod("evil", list("cpu", "1"), func(p *corev1.Pod) {
		p.Namespace, p.Annotations = "evil", map[string]string{config.AnnotationAdmission: "u1"}
	}))
	if got := c.Size().Reservations; got != 3 {
		t.Errorf("%d reservations after a foreign pod, want 3", got)
	}
}

// The scheduler passes over a listed node that is not in the part it examines, so a
// pod may get the room that another is expected in. Then that one goes on along its
// list, and counts there: no decision gives the room away a third time.
func TestExpectedPodsMoveOn(t *testing.T) {
	c := newCluster(t, nil, gpuNode("a", list(nvidia, "2")), gpuNode("b", list(nvidia, "2")), gpuNode("c", list(nvidia, "2")))
	listing := func(uid string) *corev1.Pod {
		return gpuPod(uid, list(nvidia, "1"), steeredTo("a", types.UID(uid)), steeredTo("b", types.UID(uid)), func(p *corev1.Pod) {
			terms := nodeAffinityOf(p).PreferredDuringSchedulingIgnoredDuringExecution
			terms[0].Weight, terms[1].Weight = 100, 50
			p.Annotations[config.AnnotationTarget] = "a"
		})
	}
	used := func() string { return fmt.Sprint(c.usedOn("a"), c.usedOn("b"), c.usedOn("c")) }
	for i, step := range []struct {
		pod  *corev1.Pod
		want string
	}{
		{listing("p1"), "1 0 0"},
		{listing("p2"), "2 0 0"},
		{gpuPod("x", list(nvidia, "1"), on("a")), "2 1 0"}, // p2 goes to b
		{gpuPod("y", list(nvidia, "1"), on("a")), "2 2 0"}, // p1 too
		{gpuPod("z", list(nvidia, "1"), on("b")), "2 3 0"}, // there is no room on what they list
		{gpuPod("p1", list(nvidia, "1"), on("c")), "2 2 1"},
		{gpuPod("p2", list(nvidia, "1"), on("b")), "2 2 1"},
	} {
		c.SetPod(step.pod)
		if got := used(); got != step.want {
			t.Fatalf("step %d, %s: used %s, want %s", i+1, step.pod.Name, got, step.want)
		}
	}
	if len(c.ledger.expected) != 0 {
		t.Errorf("pods are expected on %v, though all are bound", c.ledger.expected)
	}
}
