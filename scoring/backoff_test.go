package scoring

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// refused makes the pod one that its node's kubelet refused at a time.
func refused(reason string, at time.Time) podOption {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.StartTime = corev1.PodFailed, reason, &metav1.Time{Time: at}
	}
}

// blackHole is the case that gives the kind its name: g1 is in use most, and
// refuses every pod.
func blackHole(t *testing.T, change func(*config.Configuration)) *testCluster {
	t.Helper()
	return newCluster(t, change,
		gpuNode("g1", list(nvidia, "8")), gpuNode("g2", list(nvidia, "8")),
		gpuPod("on-g1", list(nvidia, "6"), on("g1")), gpuPod("on-g2", list(nvidia, "2"), on("g2")))
}

func (c *testCluster) refuse(t *testing.T, name, node, reason string) {
	t.Helper()
	c.SetPod(gpuPod(name, list(nvidia, "1"), on(node), refused(reason, c.clock)))
}

func (c *testCluster) wantFirst(t *testing.T, want string) {
	t.Helper()
	d := c.Decide(t.Context(), Request{Pod: gpuPod("new", list(nvidia, "1")), Namespace: "team", UID: "probe", DryRun: true})
	if d.Target() != want {
		t.Errorf("after %v the pod is steered to %q, want %q; decision %+v", c.clock.Sub(testStart), d.Target(), want, d)
	}
}

func TestBlackHoleBackoff(t *testing.T) {
	for _, reason := range []string{"UnexpectedAdmissionError", "OutOfnvidia.com/gpu", "OutOfcpu", "TopologyAffinityError"} {
		t.Run(reason, func(t *testing.T) {
			c := blackHole(t, nil)
			c.wantFirst(t, "g1")
			for i := range 2 {
				c.refuse(t, fmt.Sprint("refused-", i), "g1", reason)
				c.wantFirst(t, "g1") // fewer than 3
			}
			c.refuse(t, "refused-1", "g1", reason) // an update of the same pod
			c.wantFirst(t, "g1")
			c.refuse(t, "refused-2", "g1", reason)
			c.wantFirst(t, "g2")
			if got := c.Size().Backoff; got != 1 {
				t.Errorf("%d nodes in back-off, want 1", got)
			}
			c.clock = c.clock.Add(time.Minute)
			c.wantFirst(t, "g1")
		})
	}
}

// Each back-off soon after the last one is twice as long, up to the maximum; after
// good behaviour it begins anew.
func TestBackoffGrows(t *testing.T) {
	c := blackHole(t, nil)
	pods := 0
	fail := func() {
		for range 3 {
			pods++
			c.refuse(t, fmt.Sprint("refused-", pods), "g1", "UnexpectedAdmissionError")
		}
	}
	for _, pause := range []time.Duration{1, 2, 4, 8, 15, 15} {
		fail()
		c.clock = c.clock.Add(pause*time.Minute - time.Second)
		c.wantFirst(t, "g2")
		c.clock = c.clock.Add(time.Second)
		c.wantFirst(t, "g1")
	}
	c.clock = c.clock.Add(16 * time.Minute)
	fail()
	c.clock = c.clock.Add(time.Minute)
	c.wantFirst(t, "g1")
}

func TestNoBackoff(t *testing.T) {
	tests := map[string]struct {
		change func(*config.Configuration)
		pod    func(i int, now time.Time) *corev1.Pod
	}{
		"pods that ran and failed": {pod: func(i int, now time.Time) *corev1.Pod {
			return gpuPod(fmt.Sprint("p", i), list(nvidia, "1"), on("g1"), refused("", now))
		}},
		"evicted": {pod: func(i int, now time.Time) *corev1.Pod {
			return gpuPod(fmt.Sprint("p", i), list(nvidia, "1"), on("g1"), refused("Evicted", now))
		}},
		"pods without GPUs": {pod: func(i int, now time.Time) *corev1.Pod {
			return gpuPod(fmt.Sprint("p", i), list("cpu", "1"), on("g1"), refused("OutOfcpu", now))
		}},
		"never bound": {pod: func(i int, now time.Time) *corev1.Pod {
			return gpuPod(fmt.Sprint("p", i), list(nvidia, "1"), refused("UnexpectedAdmissionError", now))
		}},
		"switched off": {change: func(c *config.Configuration) { c.Nodes.Backoff.Failures = 0 }, pod: func(i int, now time.Time) *corev1.Pod {
			return gpuPod(fmt.Sprint("p", i), list(nvidia, "1"), on("g1"), refused("UnexpectedAdmissionError", now))
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := blackHole(t, tc.change)
			for i := range 40 {
				c.SetPod(tc.pod(i, c.clock))
			}
			c.wantFirst(t, "g1")
		})
	}
}

// Refusals far apart are no pattern.
func TestBackoffWindow(t *testing.T) {
	c := blackHole(t, nil)
	for i := range 5 {
		c.refuse(t, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError")
		c.clock = c.clock.Add(30 * time.Second)
		c.wantFirst(t, "g1") // at most 2 within a minute
	}
}

// Failed pods stay in the API for long. At the start only fresh ones count.
func TestBackoffAtStart(t *testing.T) {
	for age, want := range map[time.Duration]string{10 * time.Second: "g2", time.Hour: "g1"} {
		t.Run(age.String(), func(t *testing.T) {
			objects := []any{
				gpuNode("g1", list(nvidia, "8")), gpuNode("g2", list(nvidia, "8")),
				gpuPod("on-g1", list(nvidia, "6"), on("g1")),
			}
			for i := range 40 {
				objects = append(objects, gpuPod(fmt.Sprint("p", i), list(nvidia, "1"), on("g1"), refused("UnexpectedAdmissionError", testStart.Add(-age))))
			}
			newCluster(t, nil, objects...).wantFirst(t, want)
		})
	}
}

// A node that was repaired by replacing it has a clean slate, and so has a pod
// that is gone.
func TestBackoffEndsWithTheNode(t *testing.T) {
	c := blackHole(t, nil)
	for i := range 40 {
		c.refuse(t, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError")
	}
	c.wantFirst(t, "g2")
	c.DeleteNode("g1")
	c.SetNode(gpuNode("g1", list(nvidia, "8")))
	c.wantFirst(t, "g1")
	for i := range 40 {
		c.DeletePod(gpuPod(fmt.Sprint("refused-", i), nil).UID)
	}
	if left := len(c.Index.backoffs.seen); left != 0 {
		t.Errorf("%d pods are remembered that are gone", left)
	}
}

// When every node is in back-off the pod is as one that nothing fits.
func TestBackoffOnAllNodes(t *testing.T) {
	c := newCluster(t, nil, gpuNode("g1", list(nvidia, "8")))
	for i := range 3 {
		c.refuse(t, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError")
	}
	if d := c.decide(gpuPod("new", list(nvidia, "1"))); d.Reason != ReasonNothingFits {
		t.Errorf("decision %+v", d)
	}
}
