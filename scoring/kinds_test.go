package scoring_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// A decision by a pool that is not kept, since its namespace has its share of them, is the
// one by a kept pool, and so is that of a dry run.
func TestScanDecidesAsAPool(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 2))
	ranked := 0
	for range 100 {
		c := randomCluster(t, random)
		pod := randomIncoming(random)
		clustertest.Tolerating(corev1.Toleration{Key: "new"})(pod)
		q := c.QueryOf(pod)
		dry := c.Decide(t.Context(), scoring.Request{Pod: pod, Namespace: pod.Namespace, DryRun: true})
		for n := range pool.MaxPools { // of pods that fit nowhere
			c.DecideOn(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, fmt.Sprint(1000+n))))
		}
		v := c.MustView(t, q)
		scanned := c.OnView(t.Context(), &v, q)
		if c.KeepsPool(pod) || c.Scanned() != 1 {
			t.Fatal("the pool is kept: the test shows nothing")
		}
		c.Clock = c.Clock.Add(30 * time.Second) // the other kinds are unused
		q = c.QueryOf(pod)
		v = c.MustView(t, q)
		kept := c.OnView(t.Context(), &v, q)
		if !c.KeepsPool(pod) {
			t.Fatal("the pool is not kept: the test shows nothing")
		}
		if diff := cmp.Diff(kept, scanned); diff != "" {
			t.Fatalf("(-kept +scanned):\n%s", diff)
		}
		if diff := cmp.Diff(kept, dry); diff != "" {
			t.Fatalf("(-kept +dry run):\n%s", diff)
		}
		if kept.Reason == steering.ReasonNone {
			ranked++
		}
	}
	if ranked < 50 {
		t.Errorf("only %d of 100 pods were ranked", ranked)
	}
}

// neighbour creates pods next to somebody else, so many a second, until it is told to stop.
type neighbour struct {
	pod    func(i int) *corev1.Pod
	dryRun bool
}

const neighbourRate = 200

// disturb creates the neighbour's pods, at the times at which they are due, however long the
// decisions take. It returns how many got no decision in time.
func (n neighbour) disturb(s *scoring.Scorer, stop <-chan struct{}) (late int) {
	var running sync.WaitGroup
	var mu sync.Mutex
	ticker := time.NewTicker(time.Second / neighbourRate)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-stop:
			running.Wait()
			return late
		case <-ticker.C:
		}
		running.Go(func() {
			if d := decideInTime(s, n.pod(i), n.dryRun); d.Reason == steering.ReasonTimeout {
				mu.Lock()
				late++
				mu.Unlock()
			}
		})
	}
}

// decideInTime decides as the webhook does, with its timeout.
func decideInTime(s *scoring.Scorer, pod *corev1.Pod, dryRun bool) scoring.Decision {
	ctx, cancel := context.WithTimeout(context.Background(), config.Default().Server.DecisionTimeout.Duration)
	defer cancel()
	return s.Decide(ctx, scoring.Request{Pod: pod, Namespace: pod.Namespace, UID: pod.UID, DryRun: dryRun})
}

// p99Beside is how long a tenant's decisions take, 200 a second of two kinds, how many of its
// pods were not steered, and how many of the neighbour's got no decision in time.
func p99Beside(s *scoring.Scorer, n neighbour, name string) (p99 time.Duration, unsteered, late int) {
	const pods = 600
	stop, left := make(chan struct{}), make(chan int)
	go func() { left <- n.disturb(s, stop) }()
	var took []time.Duration
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for i := range pods {
		<-ticker.C
		pod := clustertest.GPUPod(fmt.Sprint(name, i), clustertest.List(clustertest.NVIDIA, fmt.Sprint(1+i%2), "cpu", "8", "memory", "64Gi"))
		start := time.Now()
		d := decideInTime(s, pod, false)
		took = append(took, time.Since(start))
		if d.Reason != steering.ReasonNone {
			unsteered++
		}
	}
	close(stop)
	late = <-left
	slices.Sort(took)
	return took[pods*99/100], unsteered, late
}

// BenchmarkBesideNewKinds measures, at 5,000 nodes, how long the decisions about one
// tenant's pods take beside somebody who creates 200 pods a second, all of one known kind
// and each of a new one, with and without dry runs. The ratio is to be 2 at most.
func BenchmarkBesideNewKinds(b *testing.B) {
	for name, dryRun := range map[string]bool{"created": false, "dry-runs": true} {
		b.Run(name, func(b *testing.B) {
			cfg := config.Default()
			ix, err := index.New(cfg, nil)
			if err != nil {
				b.Fatal(err)
			}
			s := scoring.NewScorer(cfg, ix)
			for i := range 5000 {
				ix.SetNode(clustertest.GPUNode(fmt.Sprintf("n%04d", i), clustertest.List(clustertest.NVIDIA, "8")))
			}
			ix.SetSynced()
			pod := func(i int) *corev1.Pod {
				p := clustertest.GPUPod("", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) { p.Namespace = "attacker" })
				p.UID = types.UID(fmt.Sprint("attacker-", time.Now().UnixNano(), i))
				return p
			}
			known := neighbour{pod: pod, dryRun: dryRun}
			unknown := neighbour{dryRun: dryRun, pod: func(i int) *corev1.Pod {
				p := pod(i)
				clustertest.Tolerating(corev1.Toleration{Key: string(p.UID)})(p)
				return p
			}}
			decideInTime(s, pod(0), false)
			round := 0
			for b.Loop() {
				round++
				beside, _, _ := p99Beside(s, known, fmt.Sprint("known-", round, "-"))
				attacked, unsteered, late := p99Beside(s, unknown, fmt.Sprint("new-", round, "-"))
				b.ReportMetric(float64(beside.Microseconds()), "p99-known-µs")
				b.ReportMetric(float64(attacked.Microseconds()), "p99-new-µs")
				b.ReportMetric(float64(attacked)/float64(beside), "ratio")
				b.ReportMetric(float64(unsteered), "unsteered")
				b.ReportMetric(float64(late), "late-of-attacker")
			}
		})
	}
}

// BenchmarkDecide is a decision about a pod of a known kind, and its reservation.
func BenchmarkDecide(b *testing.B) {
	for _, size := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", size), func(b *testing.B) {
			c := clustertest.New(b, nil)
			for i := range size {
				c.SetNode(clustertest.GPUNode(fmt.Sprintf("n%04d", i), clustertest.List(clustertest.NVIDIA, "8")))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				c.Clock = c.Clock.Add(50 * time.Millisecond) // 100 reservations are held
				if d := c.DecideOn(clustertest.GPUPod(fmt.Sprint(i), clustertest.Usual)); d.Reason != steering.ReasonNone {
					b.Fatal(d.Reason)
				}
			}
		})
	}
}
