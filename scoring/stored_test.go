package scoring

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// What the informers keep is enough for the index, and holds no secret.
func TestTransform(t *testing.T) {
	pod := gpuPod("p", list(nvidia, "3", "cpu", "1"), steeredTo("n", "u"), func(p *corev1.Pod) {
		p.ResourceVersion = "7"
		p.Labels = map[string]string{"a": "b"}
		p.Annotations["note"] = "canary"
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "canary"}}
		p.Spec.Containers[0].Command = []string{"canary"}
	})
	node := gpuNode("n", list(nvidia, "8"), labelled("zone", "z"), withImage("train:1", 5), func(n *corev1.Node) {
		n.ResourceVersion, n.Annotations = "8", map[string]string{"note": "canary"}
	})
	full := newCluster(t, nil, node, pod)
	reduced := newCluster(t, nil)
	stored := map[string]any{}
	for name, transform := range map[string]func() (any, error){
		"pod":  func() (any, error) { return reduced.TransformPod(pod.DeepCopy()) },
		"node": func() (any, error) { return reduced.TransformNode(node.DeepCopy()) },
	} {
		out, err := transform()
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprintf("%+v", out); strings.Contains(text, "canary") {
			t.Errorf("what is kept of the %s still holds: %s", name, text)
		}
		stored[name] = out
	}
	reduced.NodeHandler().OnAdd(stored["node"], true)
	reduced.PodHandler().OnAdd(stored["pod"], true)
	if diff := cmp.Diff(describe(full), describe(reduced)); diff != "" {
		t.Errorf("the index differs:\n%s", diff)
	}
	// The informers find their objects by these.
	for name, want := range map[string]string{"pod": "team/p", "node": "n"} {
		if key, err := cache.MetaNamespaceKeyFunc(stored[name]); err != nil || key != want {
			t.Errorf("key %q, %v, want %q", key, err, want)
		}
	}
}

// Transforming what is transformed changes nothing, nor does transforming something
// else.
func TestTransformTwice(t *testing.T) {
	c := newCluster(t, nil)
	once, _ := c.TransformPod(gpuPod("p", list(nvidia, "1")))
	if twice, err := c.TransformPod(once); err != nil || twice != once {
		t.Errorf("pod: %v, %v", twice, err)
	}
	node, _ := c.TransformNode(gpuNode("n", nil))
	if twice, err := c.TransformNode(node); err != nil || twice != node {
		t.Errorf("node: %v, %v", twice, err)
	}
	if out, err := c.TransformPod("else"); err != nil || out != "else" {
		t.Errorf("else: %v, %v", out, err)
	}
}

// A heartbeat leaves one copy of the node in memory, not two.
func TestHeartbeatIsShared(t *testing.T) {
	c := newCluster(t, nil, gpuNode("n", list(nvidia, "8")))
	out, _ := c.TransformNode(gpuNode("n", list(nvidia, "8")))
	if out.(*storedNode).node != c.states["n"].node {
		t.Error("the informer keeps a copy of its own")
	}
	changed, _ := c.TransformNode(gpuNode("n", list(nvidia, "7")))
	if changed.(*storedNode).node == c.states["n"].node {
		t.Error("a changed node is shared")
	}
	// The informer's may be told again after the node was gone: it must not bring its
	// old slot along.
	c.DeleteNode("n")
	c.SetNode(gpuNode("other", list(nvidia, "8")))
	c.NodeHandler().OnAdd(out, false)
	if a, b := c.states["n"].slot, c.states["other"].slot; a == b {
		t.Errorf("two nodes have slot %d", a)
	}
}

func TestTexts(t *testing.T) {
	var held texts
	one := held.one(strings.Clone("node-1"))
	list := held.all([]string{strings.Clone("node-1")})
	pairs := held.pairs(map[string]string{"node-1": "node-1"})
	if one != "node-1" || list[0] != one || pairs["node-1"] != one || len(held.held) != 1 {
		t.Errorf("%q, %q, %q, %d texts", one, list, pairs, len(held.held))
	}
	for i := range maxTexts {
		held.one(fmt.Sprint(i))
	}
	if len(held.held) > maxTexts {
		t.Errorf("%d texts are held", len(held.held))
	}
}
