package scoring

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// What is made of pods and nodes is enough for the index, and holds no secret.
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
		"pod":  func() (any, error) { return FeedPods(reduced.Index).Transformer()(pod.DeepCopy()) },
		"node": func() (any, error) { return FeedNodes(reduced.Index).Transformer()(node.DeepCopy()) },
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
	if err := errors.Join(FeedNodes(reduced.Index).Add(stored["node"]), FeedPods(reduced.Index).Add(stored["pod"])); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(describe(full), describe(reduced)); diff != "" {
		t.Errorf("the index differs:\n%s", diff)
	}
}

// Transforming what is transformed changes nothing, nor does transforming something
// else.
func TestTransformTwice(t *testing.T) {
	c := newCluster(t, nil)
	once, _ := FeedPods(c.Index).Transformer()(gpuPod("p", list(nvidia, "1")))
	if twice, err := FeedPods(c.Index).Transformer()(once); err != nil || twice != once {
		t.Errorf("pod: %v, %v", twice, err)
	}
	node, _ := FeedNodes(c.Index).Transformer()(gpuNode("n", nil))
	if twice, err := FeedNodes(c.Index).Transformer()(node); err != nil || twice != node {
		t.Errorf("node: %v, %v", twice, err)
	}
	if out, err := FeedPods(c.Index).Transformer()("else"); err != nil || out != "else" {
		t.Errorf("else: %v, %v", out, err)
	}
}

// A heartbeat leaves one copy of the node in memory, not two.
func TestHeartbeatIsShared(t *testing.T) {
	c := newCluster(t, nil, gpuNode("n", list(nvidia, "8")))
	out, _ := FeedNodes(c.Index).Transformer()(gpuNode("n", list(nvidia, "8")))
	if out.(*node) != c.usage.states["n"].node {
		t.Error("there is a second copy")
	}
	changed, _ := FeedNodes(c.Index).Transformer()(gpuNode("n", list(nvidia, "7")))
	if changed.(*node) == c.usage.states["n"].node {
		t.Error("a changed node is shared")
	}
	// It may come again after the node was gone: it must not bring its
	// old slot along.
	c.DeleteNode("n")
	c.SetNode(gpuNode("other", list(nvidia, "8")))
	if err := FeedNodes(c.Index).Add(out); err != nil {
		t.Fatal(err)
	}
	if a, b := c.usage.states["n"].slot, c.usage.states["other"].slot; a == b {
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
