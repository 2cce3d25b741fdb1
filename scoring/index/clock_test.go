package index_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
)

// skews are by how much our clock is ahead of the API server's.
var skews = []time.Duration{0, -5 * time.Second, 5 * time.Second, time.Hour, -time.Hour}

// skewed runs a test with each.
func skewed(t *testing.T, test func(t *testing.T, skew time.Duration)) {
	for _, skew := range skews {
		t.Run(skew.String(), func(t *testing.T) { test(t, skew) })
	}
}

// The other replica is assumed whatever our clock shows: its pods count as those of a
// burst, and what is held for them is given up.
func TestReplicasWithSkewedClock(t *testing.T) {
	skewed(t, func(t *testing.T, skew time.Duration) {
		c := crowd(t, 20)
		c.SetReplicas(2, 100)
		server := func() time.Time { return c.Clock.Add(-skew) }
		for i := range index.BurstDecisions {
			c.DecideOn(clustertest.GPUPod(fmt.Sprint("mine", i), clustertest.List(clustertest.NVIDIA, "1")))
		}
		held := c.Held()
		if held == 0 {
			t.Fatal("nothing is held: the test shows nothing")
		}
		for i := range 5 {
			uid := fmt.Sprint("theirs", i)
			c.SetPod(clustertest.GPUPod(uid, clustertest.List(clustertest.NVIDIA, "1"), created(server()), clustertest.SteeredTo("n0", "x")))
		}
		if _, others := c.BurstPods(); others < 4 || c.Held() != held-5 {
			t.Errorf("%v pods of others were counted and room is held for %d, want 5 and %d", others, c.Held(), held-5)
		}
		// One that comes late is told from the others all the same.
		c.SetPod(clustertest.GPUPod("late", clustertest.List(clustertest.NVIDIA, "1"), created(server().Add(-10*time.Second)), clustertest.SteeredTo("n0", "y")))
		if c.Held() != held-5 {
			t.Errorf("room is held for %d after a late pod, want %d", c.Held(), held-5)
		}
	})
}

// A node that refuses pods is left out for as long as it should be.
func TestBackoffWithSkewedClock(t *testing.T) {
	skewed(t, func(t *testing.T, skew time.Duration) {
		c := blackHole(t, nil)
		for i := range 3 {
			at := c.Clock.Add(-skew)
			setBound(c, clustertest.GPUPod(fmt.Sprint("refused-", i), clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("g1"), refused("UnexpectedAdmissionError", at)))
		}
		c.Clock = c.Clock.Add(time.Minute - time.Second)
		wantFirst(t, c, "g2")
		c.Clock = c.Clock.Add(time.Second)
		wantFirst(t, c, "g1")
	})
}

// Creations that are refused are told from a watch that stalls.
func TestUnseenWithSkewedClock(t *testing.T) {
	skewed(t, func(t *testing.T, skew time.Duration) {
		c := crowd(t, 30)
		seen := func() {
			c.SetPod(clustertest.GPUPod(fmt.Sprint("seen", c.Clock.UnixNano()), clustertest.List("cpu", "1"), of("another"), created(c.Clock.Add(-skew))))
		}
		seen()
		ask(t, c, "team", index.MostUnseen)
		c.Clock = c.Clock.Add(5 * time.Second)
		ask(t, c, "team", 1)
		if got := c.Size().Reservations; got != 1 {
			t.Errorf("%d reservations while nothing is seen, want 1", got)
		}
		seen()
		c.Clock = c.Clock.Add(time.Millisecond) // other pods
		ask(t, c, "team", 3)
		if got := c.Size().Reservations; got != 1 {
			t.Errorf("%d reservations after a later pod was seen, want 1", got)
		}
	})
}

// At the start a pod counts from its creation on, though not before now.
func TestTargetAtStartWithSkewedClock(t *testing.T) {
	for _, skew := range []time.Duration{0, -5 * time.Second, -time.Hour} {
		c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
		c.Unsync()
		c.SetPod(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "2"), clustertest.SteeredTo("n", "a"), created(c.Clock.Add(-skew))))
		c.SetSynced()
		if got := c.UsedOn("n"); got != 2 {
			t.Errorf("%v: %d GPUs used, want 2", skew, got)
		}
		c.Clock = c.Clock.Add(time.Minute)
		if got := c.UsedOn("n"); got != 0 {
			t.Errorf("%v: %d GPUs used a minute later", skew, got)
		}
	}
}

// The difference is learned from pods that were just created, follows the clock when it is
// set, and is told once.
func TestClockAhead(t *testing.T) {
	c := crowd(t, 1)
	var told []time.Duration
	c.Observe(index.Observers{ClockAhead: func(ahead time.Duration) { told = append(told, ahead) }})
	pods := 0
	come := func(count int, ahead time.Duration) {
		for range count {
			pods++
			c.Clock = c.Clock.Add(time.Second)
			c.SetPod(clustertest.GPUPod(fmt.Sprint("p", pods), clustertest.List("cpu", "1"), created(c.Clock.Add(-ahead))))
		}
	}
	check := func(want time.Duration, wantTold int) {
		t.Helper()
		if got := c.ClockAhead(); got != want || len(told) != wantTold {
			t.Errorf("ahead %v and told %v, want %v and %d", got, told, want, wantTold)
		}
	}
	check(0, 0)
	c.SetPod(clustertest.GPUPod("old", clustertest.List("cpu", "1"), clustertest.On("n0"), created(c.Clock.Add(-time.Hour))))
	check(0, 0) // it may have been bound for an hour
	come(15, 4*time.Second)
	check(4*time.Second, 0) // few pods
	come(1, 4*time.Second)
	check(4*time.Second, 1)
	come(1, 10*time.Second)
	check(4*time.Second, 1) // one that came late
	come(600, 30*time.Second)
	check(30*time.Second, 1) // the clock was set: known after ten minutes
	come(1, -2*time.Second)
	check(-2*time.Second, 1) // and at once when it is set back
}
