package index_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// blackHole is the case that gives the kind its name: g1 is in use most, and
// refuses every pod.
func blackHole(t *testing.T, change func(*config.Configuration)) *clustertest.Cluster {
	t.Helper()
	before := created(clustertest.Start.Add(-24 * time.Hour))
	return clustertest.New(t, change,
		clustertest.GPUNode("g1", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("g2", clustertest.List(clustertest.NVIDIA, "8")),
		clustertest.GPUPod("on-g1", clustertest.List(clustertest.NVIDIA, "6"), clustertest.On("g1"), before), clustertest.GPUPod("on-g2", clustertest.List(clustertest.NVIDIA, "2"), clustertest.On("g2"), before))
}

func refuse(t *testing.T, c *clustertest.Cluster, name, node, reason string, options ...clustertest.PodOption) {
	t.Helper()
	options = append([]clustertest.PodOption{clustertest.On(node), refused(reason, c.Clock)}, options...)
	setBound(c, clustertest.GPUPod(name, clustertest.List(clustertest.NVIDIA, "1"), options...))
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
	wantFirstFor(t, c, "team", clustertest.List(clustertest.NVIDIA, "1"), want)
}

func wantFirstFor(t *testing.T, c *clustertest.Cluster, namespace string, requests corev1.ResourceList, want string) {
	t.Helper()
	d := c.Decide(t.Context(), scoring.Request{Pod: clustertest.GPUPod("new", requests), Namespace: namespace, UID: "probe", DryRun: true})
	if d.Target() != want {
		t.Errorf("after %v a pod of %s is steered to %q, want %q; decision %+v", c.Clock.Sub(clustertest.Start), namespace, d.Target(), want, d)
	}
}

func TestBlackHoleBackoff(t *testing.T) {
	for _, reason := range []string{"UnexpectedAdmissionError", "OutOfnvidia.com/gpu", "OutOfcpu"} {
		t.Run(reason, func(t *testing.T) {
			c := blackHole(t, nil)
			wantFirst(t, c, "g1")
			for i := range 2 {
				refuse(t, c, fmt.Sprint("refused-", i), "g1", reason)
				wantFirst(t, c, "g1") // fewer than 3
			}
			c.SetPod(clustertest.GPUPod("refused-1", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("g1"), refused(reason, c.Clock))) // an update of the same pod
			wantFirst(t, c, "g1")
			refuse(t, c, "refused-2", "g1", reason)
			wantFirst(t, c, "g2")
			if got := c.Size(); got.Backoff != 0 || got.NamespaceBackoff != 1 {
				t.Errorf("%d nodes in back-off for everybody and %d for a namespace, want 0 and 1", got.Backoff, got.NamespaceBackoff)
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
		"their authors chose g1":     {set: chosenByAuthor, gpus: "99", reason: "OutOfnvidia.com/gpu"},
		"never bound":                {set: unbound, gpus: "1", reason: "UnexpectedAdmissionError"},
		"switched off":               {set: setBound, gpus: "1", reason: "UnexpectedAdmissionError", change: noBackoff},
		"a failed one changed often": {set: setOften, gpus: "1", reason: "UnexpectedAdmissionError"},
		"on a node that is gone": {set: func(c *clustertest.Cluster, p *corev1.Pod) {
			p.Spec.NodeName = "gone"
			setBound(c, p)
		}, gpus: "1", reason: "UnexpectedAdmissionError"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := blackHole(t, tc.change)
			for i := range 40 {
				if name == "a failed one changed often" {
					i = 0
				}
				tc.set(c, clustertest.GPUPod(fmt.Sprint("p", i), clustertest.List(clustertest.NVIDIA, tc.gpus), clustertest.On("g1"), refused(tc.reason, c.Clock)))
			}
			wantFirst(t, c, "g1")
			if known := c.Leaks()["outcomes"]; known > 2 {
				t.Errorf("outcomes are known of %d nodes, and there are 2", known)
			}
		})
	}
}

func noBackoff(c *config.Configuration) { c.Nodes.Backoff.Failures = 0 }

// chosenByAuthor shows a pod that was created with its node. We leave those alone.
func chosenByAuthor(c *clustertest.Cluster, pod *corev1.Pod) {
	pod.Annotations = nil
	c.SetPod(pod)
}

func unbound(c *clustertest.Cluster, pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	c.SetPod(pod)
}

func setOften(c *clustertest.Cluster, pod *corev1.Pod) {
	setBound(c, pod)
	for range 10 {
		c.SetPod(pod)
	}
}

// C65: refusals 40 seconds apart, and with no GPU pod started in between, are a row.
func TestSlowBlackHole(t *testing.T) {
	c := blackHole(t, nil)
	for i := range 3 {
		wantFirst(t, c, "g1")
		refuse(t, c, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError")
		c.Clock = c.Clock.Add(40 * time.Second)
	}
	wantFirst(t, c, "g2") // the fourth, at 120: refused at 80, until 140
	c.Clock = c.Clock.Add(40 * time.Second)
	wantFirst(t, c, "g1")
	// The next one makes four in a row, at 160 and within a minute of 140: twice as long.
	refuse(t, c, "refused-4", "g1", "UnexpectedAdmissionError")
	c.Clock = c.Clock.Add(2*time.Minute - time.Second)
	wantFirst(t, c, "g2")
	c.Clock = c.Clock.Add(time.Second)
	wantFirst(t, c, "g1")
}

// A configuration may ask for more refusals in a row than are kept one by one.
func TestBackoffAfterMany(t *testing.T) {
	const failures = 100
	c := blackHole(t, func(cfg *config.Configuration) { cfg.Nodes.Backoff.Failures = failures })
	for i := range failures {
		wantFirst(t, c, "g1")
		c.Clock = c.Clock.Add(time.Second)
		refuse(t, c, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError")
	}
	wantFirst(t, c, "g2")
	c.Clock = c.Clock.Add(time.Second)
	c.SetPod(clustertest.GPUPod("starts", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("g1"), created(c.Clock)))
	refuse(t, c, "another", "g1", "UnexpectedAdmissionError")
	wantFirst(t, c, "g1")
}

// One namespace's pods put a node out for that namespace, two namespaces' for everybody.
func TestBackoffForWhom(t *testing.T) {
	for name, tc := range map[string]struct {
		refused       []string // namespaces, one after the other
		team, another string   // the node that their pods go to
		size          index.Size
	}{
		"two of one":        {refused: []string{"team", "team"}, team: "g1", another: "g1"},
		"three of one":      {refused: []string{"team", "team", "team"}, team: "g2", another: "g1", size: index.Size{NamespaceBackoff: 1}},
		"hundred of one":    {refused: slices.Repeat([]string{"team"}, 100), team: "g2", another: "g1", size: index.Size{NamespaceBackoff: 1}},
		"two and one":       {refused: []string{"team", "other", "team"}, team: "g2", another: "g2", size: index.Size{Backoff: 1}},
		"one each":          {refused: []string{"team", "other", "third"}, team: "g2", another: "g2", size: index.Size{Backoff: 1}},
		"one after hundred": {refused: append(slices.Repeat([]string{"other"}, 100), "third"), team: "g2", another: "g2", size: index.Size{Backoff: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := blackHole(t, nil)
			for i, namespace := range tc.refused {
				c.Clock = c.Clock.Add(time.Second)
				refuse(t, c, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError", of(namespace))
			}
			one := clustertest.List(clustertest.NVIDIA, "1")
			wantFirstFor(t, c, "team", one, tc.team)
			wantFirstFor(t, c, "another", one, tc.another)
			if got := c.Size(); got.Backoff != tc.size.Backoff || got.NamespaceBackoff != tc.size.NamespaceBackoff {
				t.Errorf("%d nodes in back-off for everybody and %d for a namespace, want %d and %d", got.Backoff, got.NamespaceBackoff, tc.size.Backoff, tc.size.NamespaceBackoff)
			}
			out := map[string]nodes.Reason{}
			for _, n := range c.Nodes() {
				out[n.Name] = n.Out
			}
			want := map[string]nodes.Reason{"g1": nodes.Feasible, "g2": nodes.Feasible}
			if tc.size.Backoff == 1 {
				want["g1"] = nodes.Backoff
			}
			if diff := cmp.Diff(want, out); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
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
	c.Clock = c.Clock.Add(time.Second)
	renewed := clustertest.GPUNode("g1", clustertest.List(clustertest.NVIDIA, "8"))
	renewed.CreationTimestamp = metav1.NewTime(c.Clock)
	c.SetNode(renewed)
	wantFirst(t, c, "g1")
	for i := range 40 { // the pods of the old one are still there
		c.SetPod(clustertest.GPUPod(fmt.Sprint("refused-", i), clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("g1"), refused("UnexpectedAdmissionError", clustertest.Start)))
	}
	wantFirst(t, c, "g1")
	c.DeleteNode("g1")
	if leaks := c.Leaks(); leaks["outcomes"] > 1 || leaks["back-offs"] != 0 {
		t.Errorf("outcomes are known of %d nodes, and there are %d back-offs; only g2 exists", leaks["outcomes"], leaks["back-offs"])
	}
}

// The same when nobody told that the old node was gone, as after a gap in the watch.
func TestBackoffEndsWithAReplacedNode(t *testing.T) {
	c := blackHole(t, nil)
	for i := range 3 {
		refuse(t, c, fmt.Sprint("refused-", i), "g1", "UnexpectedAdmissionError")
	}
	wantFirst(t, c, "g2")
	renewed := clustertest.GPUNode("g1", clustertest.List(clustertest.NVIDIA, "8"))
	renewed.CreationTimestamp = metav1.NewTime(c.Clock.Add(time.Second))
	c.SetNode(renewed)
	wantFirst(t, c, "g1")
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
