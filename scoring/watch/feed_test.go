package watch_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/watch"
)

// What is made of pods and nodes is enough for the index, and holds no secret.
func TestTransform(t *testing.T) {
	pod := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "3", "cpu", "1"), clustertest.SteeredTo("n", "u"), func(p *corev1.Pod) {
		p.ResourceVersion = "7"
		p.Labels = map[string]string{"a": "b"}
		p.Annotations["note"] = "canary"
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "canary"}}
		p.Spec.Containers[0].Command = []string{"canary"}
	})
	node := clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Labelled("zone", "z"), clustertest.WithImage("train:1", 5), func(n *corev1.Node) {
		n.ResourceVersion, n.Annotations = "8", map[string]string{"note": "canary"}
	})
	full := clustertest.New(t, nil, node, pod)
	reduced := clustertest.New(t, nil)
	stored := map[string]any{}
	for name, transform := range map[string]func() (any, error){
		"pod":  func() (any, error) { return watch.Pods(reduced.Index).Transformer()(pod.DeepCopy()) },
		"node": func() (any, error) { return watch.Nodes(reduced.Index).Transformer()(node.DeepCopy()) },
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
	if err := errors.Join(watch.Nodes(reduced.Index).Add(stored["node"]), watch.Pods(reduced.Index).Add(stored["pod"])); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(describe(t, full), describe(t, reduced)); diff != "" {
		t.Errorf("the index differs:\n%s", diff)
	}
}

// describe lists what decisions depend on. What a GPU's pod usually takes along shows in
// how free CPU and memory count in the packing order.
func describe(t *testing.T, c *clustertest.Cluster) map[string]string {
	t.Helper()
	out := c.Used()
	pod := clustertest.GPUPod("looks", clustertest.List(clustertest.NVIDIA, "1"))
	asked, _ := demand.Of(pod, c.Config.Resources)
	v := c.MustLook(t, &index.Query{Pod: pod, Demand: &asked, Namespace: pod.Namespace})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		free := &nodes.State{Node: &nodes.Node{Allocatable: demand.Amounts{{Name: name, Value: 1 << 50}}}}
		out[string(name)+" per GPU"] = fmt.Sprintf("%+v", v.Key(nodes.Packing{State: free}))
	}
	return out
}

// nodeOf returns what the index has of a node.
func nodeOf(c *clustertest.Cluster, name string) *nodes.Node {
	states, _ := c.States()
	for _, s := range states {
		if s.Name == name {
			return s.Node
		}
	}
	return nil
}

// Transforming what is transformed changes nothing, nor does transforming something
// else.
func TestTransformTwice(t *testing.T) {
	c := clustertest.New(t, nil)
	once, _ := watch.Pods(c.Index).Transformer()(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1")))
	if twice, err := watch.Pods(c.Index).Transformer()(once); err != nil || twice != once {
		t.Errorf("pod: %v, %v", twice, err)
	}
	node, _ := watch.Nodes(c.Index).Transformer()(clustertest.GPUNode("n", nil))
	if twice, err := watch.Nodes(c.Index).Transformer()(node); err != nil || twice != node {
		t.Errorf("node: %v, %v", twice, err)
	}
	if out, err := watch.Pods(c.Index).Transformer()("else"); err != nil || out != "else" {
		t.Errorf("else: %v, %v", out, err)
	}
}

// A heartbeat leaves one copy of the node in memory, not two.
func TestHeartbeatIsShared(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
	out, _ := watch.Nodes(c.Index).Transformer()(clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
	if out.(*nodes.Node) != nodeOf(c, "n") {
		t.Error("there is a second copy")
	}
	changed, _ := watch.Nodes(c.Index).Transformer()(clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "7")))
	if changed.(*nodes.Node) == nodeOf(c, "n") {
		t.Error("a changed node is shared")
	}
	// It may come again after the node was gone: it must not bring its
	// old slot along.
	c.DeleteNode("n")
	c.SetNode(clustertest.GPUNode("other", clustertest.List(clustertest.NVIDIA, "8")))
	if err := watch.Nodes(c.Index).Add(out); err != nil {
		t.Fatal(err)
	}
	if a, b := nodeOf(c, "n").Slot, nodeOf(c, "other").Slot; a == b {
		t.Errorf("two nodes have slot %d", a)
	}
}

// A reflector lists everything again after a gap in the watch: what is not there any
// more is gone, and the rest stays as it is.
func TestFeedsReplace(t *testing.T) {
	c := clustertest.New(t, nil)
	nodeFeed, podFeed, namespaceFeed := watch.Nodes(c.Index), watch.Pods(c.Index), watch.Namespaces(c.Index)
	replace := func(f *watch.Feed, objects ...any) {
		t.Helper()
		if err := f.Replace(objects, "1"); err != nil || !f.HasSynced() {
			t.Fatalf("error %v, synced %v", err, f.HasSynced())
		}
	}
	if nodeFeed.HasSynced() || podFeed.HasSynced() || namespaceFeed.HasSynced() {
		t.Error("synced before the first list")
	}
	replace(namespaceFeed, namespace("team", true), namespace("gone", true))
	replace(nodeFeed, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("gone", clustertest.List(clustertest.NVIDIA, "8")))
	replace(podFeed, clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "3"), clustertest.On("n")), clustertest.GPUPod("gone", clustertest.List(clustertest.NVIDIA, "2"), clustertest.On("n")))
	if got := c.UsedOn("n"); got != 5 {
		t.Errorf("used %d, want 5", got)
	}
	renewed := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "4"), clustertest.On("n"))
	renewed.UID = "p-again"
	replace(namespaceFeed, namespace("team", true))
	replace(nodeFeed, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
	replace(podFeed, renewed)
	if got := c.UsedOn("n"); got != 4 {
		t.Errorf("used %d, want 4", got)
	}
	if size := c.Size(); size.Nodes != 1 || size.Pods != 1 {
		t.Errorf("size %+v", size)
	}
	for name, err := range map[string]error{"add": podFeed.Add(namespace("team", true)), "update": nodeFeed.Update(renewed), "delete": namespaceFeed.Delete(renewed.Spec)} {
		if err == nil {
			t.Errorf("%s: no error for an object of another kind", name)
		}
	}
	// A pod on its way counts only in a namespace that is opted in.
	for namespace, used := range map[string]int64{"gone": 4, "team": 5} {
		steered := clustertest.GPUPod("steered", clustertest.List(clustertest.NVIDIA, "1"), clustertest.SteeredTo("n", "u"))
		steered.Namespace = namespace
		c.SetPod(steered)
		if got := c.UsedOn("n"); got != used {
			t.Errorf("used %d with a pod in the namespace %s, want %d", got, namespace, used)
		}
		c.DeletePod(steered.UID)
	}
}

func TestLastEvent(t *testing.T) {
	c := clustertest.New(t, nil)
	if at := c.LastEvent(); !at.IsZero() {
		t.Errorf("an event at %v, before the first", at)
	}
	if err := watch.Nodes(c.Index).Add(clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"))); err != nil {
		t.Fatal(err)
	}
	if at := c.LastEvent(); !at.Equal(clustertest.Start) {
		t.Errorf("event of a node at %v, want %v", at, clustertest.Start)
	}
	events := map[string]func() error{
		"heartbeat": func() error {
			return watch.Nodes(c.Index).Update(clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
		},
		"pod": func() error {
			return watch.Pods(c.Index).Add(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1")))
		},
		"deleted pod": func() error {
			return watch.Pods(c.Index).Delete(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1")))
		},
	}
	for name, event := range events {
		c.Clock = c.Clock.Add(time.Minute)
		if err := event(); err != nil {
			t.Fatal(err)
		}
		if at := c.LastEvent(); !at.Equal(c.Clock) {
			t.Errorf("%s: event at %v, want %v", name, at, c.Clock)
		}
	}
}

func namespace(name string, enabled bool) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{config.LabelEnabled: strconv.FormatBool(enabled)}}}
}
