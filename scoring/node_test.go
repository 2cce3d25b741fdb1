package scoring

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node that no valid term can name is never listed: the API server would refuse
// the pod.
func TestInvalidNodeName(t *testing.T) {
	c := newCluster(t, nil, gpuNode("Not_A_Name", list(nvidia, "8")), gpuNode("b", list(nvidia, "8")), gpuNode("c", list(nvidia, "8")))
	d := c.Decide(t.Context(), Request{Pod: gpuPod("p", list(nvidia, "1")), Namespace: "team", UID: "p"})
	for _, n := range d.Ranking {
		if n.Name == "Not_A_Name" {
			t.Errorf("listed: %+v", d.Ranking)
		}
	}
	if len(d.Ranking) != 2 {
		t.Errorf("%d nodes listed, want 2", len(d.Ranking))
	}
}

// describes is true exactly when a new node would be equal: for every change that
// newNode sees.
func TestDescribes(t *testing.T) {
	object := gpuNode("n", list(nvidia, "8"), labelled("zone", "z"), withImage("a:1", 5), withImage("b:1", 6), tainted("x", corev1.TaintEffectNoSchedule))
	c := newCluster(t, nil, object)
	known := c.usage.states["n"].node
	if !known.describes(object.DeepCopy(), c.reducer.rules) {
		t.Error("a heartbeat makes it another node")
	}
	for name, change := range map[string]func(*corev1.Node){
		"not ready":     unready,
		"cordoned":      cordoned,
		"deleted":       func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} },
		"leaving":       tainted("ToBeDeletedByClusterAutoscaler", corev1.TaintEffectNoSchedule),
		"allocatable":   withCPU("1", "1Gi"),
		"label":         labelled("zone", "y"),
		"one more":      labelled("a", "b"),
		"taint":         func(n *corev1.Node) { n.Spec.Taints = nil },
		"image":         withImage("c:1", 7),
		"fewer images":  func(n *corev1.Node) { n.Status.Images = n.Status.Images[:1] },
		"size of image": func(n *corev1.Node) { n.Status.Images[0].SizeBytes++ },
	} {
		changed := object.DeepCopy()
		change(changed)
		if known.describes(changed, c.reducer.rules) {
			t.Errorf("%s: not seen", name)
		}
		if known.equal(newNode(changed, c.reducer.rules, &c.reducer.texts)) {
			t.Errorf("%s: newNode does not see it either", name)
		}
	}
}
