package nodes_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// A node that no valid term can name is never listed: the API server would refuse
// the pod.
func TestInvalidNodeName(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("Not_A_Name", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("b", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("c", clustertest.List(clustertest.NVIDIA, "8")))
	d := c.Decide(t.Context(), scoring.Request{Pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1")), Namespace: "team", UID: "p"})
	for _, n := range d.Ranking {
		if n.Name == "Not_A_Name" {
			t.Errorf("listed: %+v", d.Ranking)
		}
	}
	if len(d.Ranking) != 2 {
		t.Errorf("%d nodes listed, want 2", len(d.Ranking))
	}
}

// Describes is true exactly when a new node would be equal: for every change that
// New sees.
func TestDescribes(t *testing.T) {
	object := clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Labelled("zone", "z"), clustertest.WithImage("a:1", 5), clustertest.WithImage("b:1", 6), clustertest.Tainted("x", corev1.TaintEffectNoSchedule))
	c := clustertest.New(t, nil, object)
	known := c.StateOf("n").Node
	rules, err := nodes.NewRules(c.Config.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	if !known.Describes(object.DeepCopy(), rules) {
		t.Error("a heartbeat makes it another node")
	}
	for name, change := range map[string]func(*corev1.Node){
		"not ready":     clustertest.Unready,
		"cordoned":      clustertest.Cordoned,
		"deleted":       func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} },
		"leaving":       clustertest.Tainted("ToBeDeletedByClusterAutoscaler", corev1.TaintEffectNoSchedule),
		"allocatable":   clustertest.WithCPU("1", "1Gi"),
		"label":         clustertest.Labelled("zone", "y"),
		"one more":      clustertest.Labelled("a", "b"),
		"taint":         func(n *corev1.Node) { n.Spec.Taints = nil },
		"image":         clustertest.WithImage("c:1", 7),
		"fewer images":  func(n *corev1.Node) { n.Status.Images = n.Status.Images[:1] },
		"size of image": func(n *corev1.Node) { n.Status.Images[0].SizeBytes++ },
	} {
		changed := object.DeepCopy()
		change(changed)
		if known.Describes(changed, rules) {
			t.Errorf("%s: not seen", name)
		}
		if known.Equal(nodes.New(changed, rules, nodes.NewTexts(nodes.MaxTextBytes))) {
			t.Errorf("%s: New does not see it either", name)
		}
	}
}
