package index_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
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
	s := kubeScheduler{free: map[string]int{}}
	for i := range b.nodes {
		s.nodes = append(s.nodes, fmt.Sprintf("n%03d", i))
		s.free[s.nodes[i]] = gpusOfNode
	}
	for _, pod := range b.decide(t, s.nodes) {
		if !s.schedule(steering.Listed(pod)) {
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
	clusters := make([]*clustertest.Cluster, b.replicas)
	for r := range clusters {
		clusters[r] = clustertest.New(t, b.configure)
		for _, name := range nodes {
			clusters[r].SetNode(clustertest.GPUNode(name, clustertest.List(clustertest.NVIDIA, strconv.Itoa(gpusOfNode))))
		}
		clusters[r].SetReplicas(b.replicas, 0)
	}
	b.replayBefore(clusters)
	seen := 0
	for i := range b.nodes * gpusOfNode / 2 {
		replica := clusters[random.IntN(b.replicas)]
		if b.assumeNone {
			replica.SetReplicas(0, 0)
		}
		uid := fmt.Sprintf("p%d", i)
		created = append(created, clustertest.GPUPod(uid, clustertest.Usual, clustertest.SteeredBy(replica.DecideOn(clustertest.GPUPod(uid, clustertest.Usual)), types.UID(uid))))
		for ; seen < i-b.lag; seen++ {
			for _, r := range clusters {
				r.SetPod(created[seen])
			}
		}
	}
	return created
}

// replayBefore lets the replicas decide about the earlier pods, in turn as long as each
// has some left.
func (b burst) replayBefore(replicas []*clustertest.Cluster) {
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
			unseen = append(unseen, clustertest.GPUPod(uid, clustertest.Usual, clustertest.SteeredBy(replicas[r].DecideOn(clustertest.GPUPod(uid, clustertest.Usual)), types.UID(uid))))
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

// kubeScheduler places pods of one GPU as kube-scheduler does: of the nodes that it
// examines, in a window that moves on, on the first listed one.
type kubeScheduler struct {
	nodes []string
	free  map[string]int
	start int
}

// schedule places a pod. It is false if none of the listed nodes is among those
// examined and free; then the pod goes to the emptiest.
func (s *kubeScheduler) schedule(listed []string) bool {
	cfg := config.Default()
	left, place := scheduler.Examined(&cfg.Scheduler, len(s.nodes)), s.start
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
			if cfg := config.Default(); scheduler.Examined(&cfg.Scheduler, tc.nodes) < tc.nodes {
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
