package scoring

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// refused makes the pod one that its node's kubelet refused.
func refused(reason string) podOption {
	return func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, reason }
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
	c.setBound(gpuPod(name, list(nvidia, "1"), on(node), refused(reason)))
}

// setBound shows a pod as it was before it had a node, and then as it is.
func (c *testCluster) setBound(pod *corev1.Pod) {
	pending := pod.DeepCopy()
	pending.Spec.NodeName, pending.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	c.SetPod(pending)
	c.SetPod(pod)
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
			c.SetPod(gpuPod("refused-1", list(nvidia, "1"), on("g1"), refused(reason))) // an update of the same pod
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
		set    func(*testCluster, *corev1.Pod)
		gpus   string
		reason string
	}{
		"pods that ran and failed":   {set: (*testCluster).setBound, gpus: "1", reason: ""},
		"evicted":                    {set: (*testCluster).setBound, gpus: "1", reason: "Evicted"},
		"pods without GPUs":          {set: (*testCluster).setBound, gpus: "0", reason: "OutOfcpu"},
		"their authors chose g1":     {set: func(c *testCluster, p *corev1.Pod) { c.SetPod(p) }, gpus: "99", reason: "OutOfnvidia.com/gpu"},
		"never bound":                {set: unbound, gpus: "1", reason: "UnexpectedAdmissionError"},
		"switched off":               {set: (*testCluster).setBound, gpus: "1", reason: "UnexpectedAdmissionError", change: noBackoff},
		"a failed one changed often": {set: setOften, gpus: "1", reason: "UnexpectedAdmissionError"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := blackHole(t, tc.change)
			for i := range 40 {
				if name == "a failed one changed often" {
					i = 0
				}
				tc.set(c, gpuPod(fmt.Sprint("p", i), list(nvidia, tc.gpus), on("g1"), refused(tc.reason)))
			}
			c.wantFirst(t, "g1")
		})
	}
}

func noBackoff(c *config.Configuration) { c.Nodes.Backoff.Failures = 0 }

func unbound(c *testCluster, pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	c.SetPod(pod)
}

func setOften(c *testCluster, pod *corev1.Pod) {
	if len(c.Index.backoffs.nodes) == 0 {
		c.setBound(pod)
	}
	for range 10 {
		c.SetPod(pod)
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

// Failed pods stay in the API for long. Those that were there at the start do not
// count: nobody saw them before they had a node.
func TestBackoffAtStart(t *testing.T) {
	objects := []any{
		gpuNode("g1", list(nvidia, "8")), gpuNode("g2", list(nvidia, "8")),
		gpuPod("on-g1", list(nvidia, "6"), on("g1")),
	}
	for i := range 40 {
		objects = append(objects, gpuPod(fmt.Sprint("p", i), list(nvidia, "1"), on("g1"), refused("UnexpectedAdmissionError")))
	}
	newCluster(t, nil, objects...).wantFirst(t, "g1")
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
	if left := len(c.Index.backoffs.pending); left != 0 {
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
