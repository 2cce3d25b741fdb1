package pool_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
)

// ofKind is a pod of the n-th kind in a namespace: each has a toleration of its own.
func ofKind(namespace string, n int) *corev1.Pod {
	key := fmt.Sprint(namespace, "-", n)
	return clustertest.GPUPod(key, clustertest.List(clustertest.NVIDIA, "1"),
		clustertest.Tolerating(corev1.Toleration{Key: key}), func(p *corev1.Pod) { p.Namespace = namespace })
}

// sharedCluster has room for thousands of pods.
func sharedCluster(t *testing.T) *clustertest.Cluster {
	t.Helper()
	return clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "10000", "pods", "10000")))
}

// decideOnKinds decides about a pod of each of these kinds, all of which are to be steered,
// and returns how many kinds of the namespace have a pool then.
func decideOnKinds(t *testing.T, c *clustertest.Cluster, namespace string, from, to int) (kept int) {
	t.Helper()
	for n := from; n < to; n++ {
		if d := c.DecideOn(ofKind(namespace, n)); d.Target() != "n" {
			t.Fatalf("kind %d of %s: %+v", n, namespace, d)
		}
	}
	for n := range to {
		if c.KeepsPool(ofKind(namespace, n)) {
			kept++
		}
	}
	return kept
}

// A namespace with ever new kinds takes no pool from others, nor time for pools that are not
// used again: it keeps those of its first kinds, and its other pods are ranked by a scan.
func TestNewKindsTakeNoPoolsFromOthers(t *testing.T) {
	c := sharedCluster(t)
	if kept := decideOnKinds(t, c, "team", 0, 5); kept != 5 {
		t.Fatalf("%d pools of 5 kinds", kept)
	}
	const attacks = 200
	if kept := decideOnKinds(t, c, "attacker", 0, attacks); kept != pool.MaxPools-5 {
		t.Errorf("the attacker has %d pools, want %d", kept, pool.MaxPools-5)
	}
	if kept := decideOnKinds(t, c, "team", 5, 5); kept != 5 {
		t.Errorf("%d of 5 pools are left", kept)
	}
	if got, want := c.Scanned(), attacks-(pool.MaxPools-5); got != want {
		t.Errorf("%d scans, want %d", got, want)
	}
	// Others get theirs at once, from the attacker, until they have as many.
	if kept := decideOnKinds(t, c, "team", 5, pool.MaxPools); kept != pool.MaxPools/2 {
		t.Errorf("%d pools of %d kinds, want a half of all", kept, pool.MaxPools)
	}
	if kept := decideOnKinds(t, c, "other", 0, pool.MaxPools); kept != pool.MaxPools/3 {
		t.Errorf("%d pools of a third namespace, want a third of all", kept)
	}
}

// What a namespace does not use any more makes room for its new kinds.
func TestUnusedPoolsMakeRoom(t *testing.T) {
	c := sharedCluster(t)
	decideOnKinds(t, c, "team", 0, pool.MaxPools)
	c.Clock = c.Clock.Add(pool.IdleAge)
	decideOnKinds(t, c, "team", 0, pool.MaxPools-1) // all but the last one are used again
	decideOnKinds(t, c, "team", pool.MaxPools, pool.MaxPools+2)
	for n, want := range map[int]bool{
		0: true, pool.MaxPools - 2: true, pool.MaxPools - 1: false, pool.MaxPools: true, pool.MaxPools + 1: false,
	} {
		if got := c.KeepsPool(ofKind("team", n)); got != want {
			t.Errorf("kind %d has a pool: %v, want %v", n, got, want)
		}
	}
}

// A namespace with one kind more than there are pools, in turn, is steered as one with
// fewer, and nearly all of its pods find their pools.
func TestOneKindMoreThanPools(t *testing.T) {
	c := sharedCluster(t)
	const rounds = 20
	for range rounds {
		decideOnKinds(t, c, "team", 0, pool.MaxPools+1)
	}
	if got := c.Scanned(); got != rounds {
		t.Errorf("%d of %d pods were ranked by a scan, want one in a round", got, rounds*(pool.MaxPools+1))
	}
}

// Namespaces that have one pool each are all alike: the next one waits until a pool is
// unused.
func TestAsManyNamespacesAsPools(t *testing.T) {
	c := sharedCluster(t)
	for i := range pool.MaxPools {
		decideOnKinds(t, c, fmt.Sprint("team-", i), 0, 1)
	}
	if kept := decideOnKinds(t, c, "late", 0, 1); kept != 0 {
		t.Error("a pool that is in use was dropped")
	}
	c.Clock = c.Clock.Add(pool.IdleAge)
	if kept := decideOnKinds(t, c, "late", 0, 1); kept != 1 {
		t.Error("an unused pool is not dropped")
	}
}

// A pool is of the namespace that used it last: nobody has the pools of others counted as
// its own by using their kinds once.
func TestPoolsAreOfWhoUsesThem(t *testing.T) {
	c := sharedCluster(t)
	plain := func(namespace string) *corev1.Pod {
		return clustertest.GPUPod("plain", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) { p.Namespace = namespace })
	}
	c.DecideOn(plain("attacker"))
	decideOnKinds(t, c, "attacker", 0, pool.MaxPools-1)
	c.DecideOn(plain("team"))
	decideOnKinds(t, c, "attacker", 0, pool.MaxPools-1) // the oldest is the one of the team now
	if kept := decideOnKinds(t, c, "team", 0, 10); kept != 10 {
		t.Errorf("%d of 10 pools", kept)
	}
	if !c.KeepsPool(plain("team")) {
		t.Error("the team's pool was dropped as one of the attacker's")
	}
}

// With many kinds, only pools of those that are asked for follow events. The others are as
// if they did as soon as they are asked for, also when nearly all nodes have changed.
func TestPoolsRest(t *testing.T) {
	const size, kinds = 3 * pool.MaxBehind, 3 * pool.AlwaysAwake
	c := clustertest.New(t, nil)
	for i := range size {
		c.SetNode(clustertest.GPUNode(fmt.Sprintf("n%02d", i), clustertest.List(clustertest.NVIDIA, "8")))
	}
	awake := func() (count int) {
		for n := range kinds {
			// Without a pool that follows events, a look takes the states of all nodes along.
			if c.MustLook(t, c.QueryOf(ofKind("team", n))).All == nil {
				count++
			}
		}
		return count
	}
	decide := func(n int) string {
		d := c.DecideOn(ofKind("team", n))
		return d.Target()
	}
	for n := range kinds {
		decide(n)
	}
	if got := awake(); got != pool.AlwaysAwake {
		t.Errorf("%d pools follow events, want %d", got, pool.AlwaysAwake)
	}
	for _, changed := range []int{1, size - 1} {
		want := fmt.Sprintf("n%02d", changed-1)
		for i := range size {
			gpus := "1" // all are alike but for the one that is fullest
			if fmt.Sprintf("n%02d", i) == want {
				gpus = "7"
			}
			if i < changed {
				c.SetPod(clustertest.GPUPod(fmt.Sprint("on", i), nil, clustertest.On("gone")))
				c.SetPod(clustertest.GPUPod(fmt.Sprint("on", i), clustertest.List(clustertest.NVIDIA, gpus), clustertest.On(fmt.Sprintf("n%02d", i))))
			}
		}
		c.Clock = c.Clock.Add(c.Config.InFlight.ReservationTTL.Duration)
		if got := decide(kinds - 1); got != want {
			t.Errorf("%d nodes changed: target %s, want %s", changed, got, want)
		}
	}
	for range kinds {
		c.Clock = c.Clock.Add(pool.RestAge)
		decide(0)
	}
	if got := awake(); got != 1 {
		t.Errorf("%d pools follow events though all but one are unused", got)
	}
	if c.Scanned() != 0 {
		t.Errorf("%d scans", c.Scanned())
	}
}
