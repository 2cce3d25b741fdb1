package index_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// refused makes the pod one that its node's kubelet refused.
func refused(reason string) clustertest.PodOption {
	return func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, reason }
}

// blackHole is the case that gives the kind its name: g1 is in use most, and
// refuses every pod.
func blackHole(t *testing.T, change func(*config.Configuration)) *clustertest.Cluster {
	t.Helper()
	return clustertest.New(t, change,
		clustertest.GPUNode("g1", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("g2", clustertest.List(clustertest.NVIDIA, "8")),
		clustertest.GPUPod("on-g1", clustertest.List(clustertest.NVIDIA, "6"), clustertest.On("g1")), clustertest.GPUPod("on-g2", clustertest.List(clustertest.NVIDIA, "2"), clustertest.On("g2")))
}

func refuse(t *testing.T, c *clustertest.Cluster, name, node, reason string) {
	t.Helper()
	setBound(c, clustertest.GPUPod(name, clustertest.List(clustertest.NVIDIA, "1"), clustertest.On(node), refused(reason)))
}

// setBound shows a pod as it was before it had a node, and then as it is.
func setBound(c *clustertest.Cluster, pod *corev1.Pod) {
	pending := pod.DeepCopy()
	pending.Spec.NodeName, pending.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	c.SetPod(pending)
	c.SetPod(pod)
}

func wantFirst(t *testing.T, c *clustertest.Cluster, want string) {
	t.Helper()
	d := c.Decide(t.Context(), scoring.Request{Pod: clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "1")), Namespace: "team", UID: "probe", DryRun: true})
	if d.Target() != want {
		t.Errorf("after %v the pod is steered to %q, want %q; decision %+v", c.Clock.Sub(clustertest.Start), d.Target(), want, d)
	}
}

func TestBlackHoleBackoff(t *testing.T) {
	for _, reason := range []string{"UnexpectedAdmissionError", "OutOfnvidia.com/gpu", "OutOfcpu", "TopologyAffinityError"} {
		t.Run(reason, func(t *testing.T) {
			c := blackHole(t, nil)
			wantFirst(t, c, "g1")
			for i := range 2 {
				refuse(t, c, fmt.Sprint("refused-", i), "g1", reason)
				wantFirst(t, c, "g1") // fewer than 3
			}
			c.SetPod(clustertest.GPUPod("refused-1", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("g1"), refused(reason))) // an update of the same pod
			wantFirst(t, c, "g1")
			refuse(t, c, "refused-2", "g1", reason)
			wantFirst(t, c, "g2")
			if got := c.Size().Backoff; got != 1 {
				t.Errorf("%d nodes in back-off, want 1", got)
			}
			c.Clock = c.Clock.Add(time.Minute)
			wantFirst(t, c, "g1")
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
			refuse(t, c, fmt.Sprint("refused-", pods), "g1", "UnexpectedAdmissionError")
		}
	}
	for _, pause := range []time.Duration{1, 2, 4, 8, 15, 15} {
		fail()
		c.Clock = c.Clock.Add(pause*time.Minute - time.Second)
		wantFirst(t, c, "g2")
		c.Clock = c.Clock.Add(time.Second)
		wantFirst(t, c, "g1")
	}
	c.Clock = c.Clock.Add(16 * time.Minute)
	fail()
	c.Clock = c.Clock.Add(time.Minute)
	wantFirst(t, c, "g1")
}

func TestNoBackoff(t *testing.T) {
	tests := map[string]struct {
		change func(*config.Configuration)
		set    func(*clustertest.Cluster, *corev1.Pod)
		gpus   string
		reason string
	}{
		"pods that ran and failed":   {set: setBound, gpus: "1", reason: ""},
		"evicted":                    {set: setBound, gpus: "1", reason: "Evicted"},
		"pods without GPUs":          {set: setBound, gpus: "0", reason: "OutOfcpu"},
		"their authors chose g1":     {set: func(c *clustertest.Cluster, p *corev1.Pod) { c.SetPod(p) }, gpus: "99", reason: "OutOfnvidia.com/gpu"},
		"never bound":                {set: unbound, gpus: "1", reason: "UnexpectedAdmissionError"},
		"switched off":               {set: setBound, gpus: "1", reason: "UnexpectedAdmissionError", change: noBackoff},
		"a failed one changed often": {set: setOften, gpus: "1", reason: "UnexpectedAdmissionError"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := blackHole(t, tc.change)
			for i := range 40 {
				if name == "a failed one changed often" {
					i = 0
				}
				tc.set(c, clustertest.GPUPod(fmt.Sprint("p", i), clustertest.List(clustertest.NVIDIA, tc.gpus), clustertest.On("g1"), refused(tc.reason)))
			}
			wantFirst(t, c, "g1")
		})
	}
}

func noBackoff(c *config.Configuration) { c.Nodes.Backoff.Failures = 0 }

func unbound(c *clustertest.Cluster, pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	c.SetPod(pod)
}

func setOften(c *clustertest.Cluster, pod *corev1.Pod) {
	if c.Refusing() == 0 {
		setBound(c, pod)
	}
	for range 10 {
		c.SetPod(pod)
	}
}

// Refusals far apart are no pattern.
func TestBackoffWindow(t *testing.T) {
	c := blackHole(t, nil)
	for i := range 5 {
		refuse(t, c, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError")
		c.Clock = c.Clock.Add(30 * time.Second)
		wantFirst(t, c, "g1") // at most 2 within a minute
	}
}

// Failed pods stay in the API for long. Those that were there at the start do not
// count: nobody saw them before they had a node.
func TestBackoffAtStart(t *testing.T) {
	objects := []any{
		clustertest.GPUNode("g1", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("g2", clustertest.List(clustertest.NVIDIA, "8")),
		clustertest.GPUPod("on-g1", clustertest.List(clustertest.NVIDIA, "6"), clustertest.On("g1")),
	}
	for i := range 40 {
		objects = append(objects, clustertest.GPUPod(fmt.Sprint("p", i), clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("g1"), refused("UnexpectedAdmissionError")))
	}
	wantFirst(t, clustertest.New(t, nil, objects...), "g1")
}

// A node that was repaired by replacing it has a clean slate, and so has a pod
// that is gone.
func TestBackoffEndsWithTheNode(t *testing.T) {
	c := blackHole(t, nil)
	for i := range 40 {
		refuse(t, c, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError")
	}
	wantFirst(t, c, "g2")
	c.DeleteNode("g1")
	c.SetNode(clustertest.GPUNode("g1", clustertest.List(clustertest.NVIDIA, "8")))
	wantFirst(t, c, "g1")
	for i := range 40 {
		c.DeletePod(clustertest.GPUPod(fmt.Sprint("refused-", i), nil).UID)
	}
	if left := c.Leaks()["pods that may be refused"]; left != 0 {
		t.Errorf("%d pods are remembered that are gone", left)
	}
}

// When every node is in back-off the pod is as one that nothing fits.
func TestBackoffOnAllNodes(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("g1", clustertest.List(clustertest.NVIDIA, "8")))
	for i := range 3 {
		refuse(t, c, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError")
	}
	if d := c.DecideOn(clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "1"))); d.Reason != steering.ReasonNothingFits {
		t.Errorf("decision %+v", d)
	}
}
