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
			d := c.Decide(Request{Pod: gpuPod("p", list(nvidia, "1")), UID: types.UID(fmt.Sprint(i))})
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
	c.Decide(Request{Pod: pod, UID: "a"})
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
		if d := c.Decide(Request{Pod: pod, UID: "a"}); d.Target() != "n" {
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
			c.Decide(Request{Pod: pod, UID: "a"})
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
			c.Decide(Request{Pod: gpuPod("copy", list(nvidia, "1")), UID: "a"})
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
