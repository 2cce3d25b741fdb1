package index_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
)

// crowd is a cluster of so many nodes with 8 GPUs.
func crowd(t *testing.T, count int) *clustertest.Cluster {
	t.Helper()
	c := clustertest.New(t, nil)
	for i := range count {
		c.SetNode(clustertest.GPUNode(fmt.Sprint("n", i), clustertest.List(clustertest.NVIDIA, "8")))
	}
	return c
}

// ask decides about pods of 8 GPUs that are never created, at once.
func ask(t *testing.T, c *clustertest.Cluster, namespace string, count int) {
	t.Helper()
	for i := range count {
		pod := clustertest.GPUPod(fmt.Sprint(namespace, c.Clock.UnixNano(), "-", i), clustertest.List(clustertest.NVIDIA, "8"), of(namespace))
		if d := c.DecideOn(pod); d.Target() == "" {
			t.Errorf("pod %d is not steered: %s", i, d.Reason)
		}
	}
}

// another is a pod of somebody else that was just created: the watch has come so far.
func another(c *clustertest.Cluster) {
	c.SetPod(clustertest.GPUPod(fmt.Sprint("another", c.Clock.UnixNano()), clustertest.List("cpu", "1"), of("another"), created(c.Clock)))
}

// A namespace whose pods never come reserves no more, until one comes.
func TestUnseen(t *testing.T) {
	ttl := 5 * time.Second
	for name, tc := range map[string]struct {
		asked int
		then  func(c *clustertest.Cluster)
		want  int // reservations for three more pods
	}{
		"as many as allowed": {index.MostUnseen - 1, another, 3},
		"too many":           {index.MostUnseen, another, 0},
		"no pod has come since": {index.MostUnseen, func(*clustertest.Cluster) {
		}, 3},
		"only one of before has come": {index.MostUnseen, func(c *clustertest.Cluster) {
			c.SetPod(clustertest.GPUPod("old", clustertest.List("cpu", "1"), of("another"), created(clustertest.Start)))
		}, 3},
		"the first of them comes, late": {index.MostUnseen, func(c *clustertest.Cluster) {
			another(c)
			ask(t, c, "team", 1) // without a reservation
			c.SetPod(clustertest.GPUPod("late", clustertest.Usual, clustertest.SteeredTo("n0", "late"), created(c.Clock)))
			c.DeletePod("late")
		}, 3},
		"one without GPUs comes": {index.MostUnseen, func(c *clustertest.Cluster) {
			c.SetPod(clustertest.GPUPod("web", clustertest.List("cpu", "1"), created(c.Clock)))
		}, 0},
		"one of another namespace comes": {index.MostUnseen, func(c *clustertest.Cluster) {
			c.SetPod(clustertest.GPUPod("other", clustertest.Usual, of("other"), created(c.Clock)))
		}, 0},
		"one changes that was there": {index.MostUnseen, func(c *clustertest.Cluster) {
			another(c)
			c.SetPod(clustertest.GPUPod("there", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("n0"), clustertest.Terminating))
		}, 0},
		"opted out and in": {index.MostUnseen, func(c *clustertest.Cluster) {
			another(c)
			c.SetNamespace("team", false)
			c.SetNamespace("team", true)
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			c := crowd(t, 30)
			c.SetPod(clustertest.GPUPod("there", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("n0")))
			ask(t, c, "team", tc.asked)
			c.Clock = c.Clock.Add(ttl)
			if got := c.Unseen(); got != tc.asked {
				t.Errorf("%d unseen, want %d", got, tc.asked)
			}
			tc.then(c)
			ask(t, c, "team", 3)
			if got := c.Size().Reservations; got != tc.want {
				t.Errorf("%d reservations, want %d", got, tc.want)
			}
		})
	}
}

// Pods of 8 GPUs, 40 a second, that a quota refuses, hold the nodes for as long as the
// first reservations last, and no longer. The victim has a pod each second.
func TestRefusedCreationsHoldNothing(t *testing.T) {
	c := crowd(t, 300)
	const attack = 20 // seconds
	for second := range attack {
		for i := range 40 {
			ask(t, c, "team", 1)
			c.Clock = c.Clock.Add(25 * time.Millisecond)
			if i == 0 {
				victim := clustertest.GPUPod(fmt.Sprint("victim", second), clustertest.List(clustertest.NVIDIA, "1"), of("victim"), created(c.Clock.Truncate(time.Second)))
				if d := c.DecideOn(victim); d.Target() == "" {
					t.Errorf("second %d: the victim is not steered: %s", second, d.Reason)
				}
				clustertest.SteeredTo("n0", victim.UID)(victim)
				c.SetPod(victim)
			}
		}
		// 40 a second for 5 s; then those that are not over yet, and at last none.
		if got := c.Size().Reservations; second >= 10 && got > 0 {
			t.Errorf("%d pods that never came hold nodes after %d s", got, second+1)
		}
	}
}

// Nobody suffers from a watch that stalls, as after a restart of etcd: nothing is seen of
// anybody, then everything.
func TestStalledWatch(t *testing.T) {
	c := crowd(t, 60)
	another(c)
	var late []*corev1.Pod
	for _, namespace := range []string{"team", "other"} {
		c.SetNamespace(namespace, true)
		for i := range 20 {
			pod := clustertest.GPUPod(fmt.Sprint(namespace, i), clustertest.List(clustertest.NVIDIA, "8"), of(namespace), created(c.Clock))
			d := c.DecideOn(pod)
			late = append(late, clustertest.GPUPod(fmt.Sprint(namespace, i), clustertest.List(clustertest.NVIDIA, "8"), of(namespace), created(c.Clock), clustertest.SteeredBy(d, pod.UID)))
		}
	}
	c.Clock = c.Clock.Add(10 * time.Second)
	if got := c.Unseen(); got != 40 {
		t.Errorf("%d unseen, want 40", got)
	}
	decide := func(when, namespace string) {
		t.Helper()
		before := c.Size().Reservations
		d := c.DecideOn(clustertest.GPUPod(when+namespace, clustertest.List(clustertest.NVIDIA, "1"), of(namespace)))
		if got := c.Size().Reservations - before; d.Target() == "" || got != 1 {
			t.Errorf("%s a pod of %s goes to %q with %d reservations", when, namespace, d.Target(), got)
		}
	}
	decide("while it stalls", "team")
	decide("while it stalls", "other")
	for _, pod := range late {
		c.SetPod(pod)
	}
	another(c)
	decide("afterwards", "team")
	decide("afterwards", "other")
}

// What is remembered of namespaces is bounded, even if somebody makes them up.
func TestUnseenIsBounded(t *testing.T) {
	c := crowd(t, 2)
	for i := range index.MaxRuns + 10 {
		ask(t, c, fmt.Sprint("made-up-", i), 1)
		c.Clock = c.Clock.Add(time.Minute)
	}
	if got := c.UnseenRuns(); got > index.MaxRuns {
		t.Errorf("%d namespaces are remembered, want %d at most", got, index.MaxRuns)
	}
}
