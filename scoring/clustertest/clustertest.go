// Package clustertest builds nodes, pods and clusters for the tests of the rooms of
// scoring. It is no part of the product.
package clustertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// Names of GPU resources that are configured by default.
const (
	NVIDIA = "nvidia.com/gpu"
	MIG    = "nvidia.com/mig-1g.5gb"
	AMD    = "amd.com/gpu"
)

// List builds a resource list from name, quantity pairs.
func List(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// Usual is the pod of most examples: a twelfth of the node's CPU and an eighteenth of
// its memory per GPU.
var Usual = List(NVIDIA, "1", "cpu", "8", "memory", "64Gi")

// NodeOption changes a node under construction.
type NodeOption func(*corev1.Node)

// GPUNode is a ready node with 96 CPUs, 1152 GiB, and the given resources.
func GPUNode(name string, resources corev1.ResourceList, options ...NodeOption) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: List("cpu", "96", "memory", "1152Gi", "pods", "110"),
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for r, q := range resources {
		n.Status.Allocatable[r] = q
	}
	for _, o := range options {
		o(n)
	}
	return n
}

// Tainted adds a taint.
func Tainted(key string, effect corev1.TaintEffect) NodeOption {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

// Labelled sets a label.
func Labelled(key, value string) NodeOption {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

// Cordoned makes a node unschedulable.
func Cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// Unready makes the state of a node unknown.
func Unready(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

// WithCPU sets what a node offers of CPU and memory.
func WithCPU(cpu, memory string) NodeOption {
	return func(n *corev1.Node) {
		n.Status.Allocatable["cpu"], n.Status.Allocatable["memory"] = resource.MustParse(cpu), resource.MustParse(memory)
	}
}

// WithImage adds an image.
func WithImage(name string, size int64) NodeOption {
	return func(n *corev1.Node) {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{name}, SizeBytes: size})
	}
}

// PodOption changes a pod under construction.
type PodOption func(*corev1.Pod)

// GPUPod is a pod in namespace team whose one container limits the resources.
func GPUPod(uid string, resources corev1.ResourceList, options ...PodOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "team", UID: types.UID(uid), CreationTimestamp: metav1.Time{Time: Start}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:      "c",
			Resources: corev1.ResourceRequirements{Requests: resources, Limits: resources},
		}}},
	}
	for _, o := range options {
		o(p)
	}
	return p
}

// On binds a pod.
func On(node string) PodOption {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning }
}

// Phase sets the phase of a pod.
func Phase(ph corev1.PodPhase) PodOption { return func(p *corev1.Pod) { p.Status.Phase = ph } }

// Terminating says that a pod is being deleted.
func Terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: Start} }

// OwnedByDaemonSet makes a DaemonSet the controller of a pod.
func OwnedByDaemonSet(p *corev1.Pod) {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &yes}}
}

// Tolerating adds a toleration.
func Tolerating(t corev1.Toleration) PodOption {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

// Preferring adds a preferred node-affinity term of the user.
func Preferring(weight int32, key, value string) PodOption {
	return func(p *corev1.Pod) {
		affinity := NodeAffinityOf(p)
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
			}}})
	}
}

// SteeredTo makes the pod look as if we had steered it to a node.
func SteeredTo(node string, admission types.UID) PodOption {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{config.AnnotationTarget: node, config.AnnotationAdmission: string(admission)}
		affinity := NodeAffinityOf(p)
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			}}})
	}
}

// SteeredBy puts a decision's terms on the pod.
func SteeredBy(d scoring.Decision, admission types.UID) PodOption {
	return func(p *corev1.Pod) {
		for _, n := range d.Ranking {
			SteeredTo(n.Name, admission)(p)
			terms := NodeAffinityOf(p).PreferredDuringSchedulingIgnoredDuringExecution
			terms[len(terms)-1].Weight = n.Weight
		}
		p.Annotations[config.AnnotationTarget] = d.Target()
	}
}

// NodeAffinityOf returns the node affinity of a pod, which gets one if it has none.
func NodeAffinityOf(p *corev1.Pod) *corev1.NodeAffinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return p.Spec.Affinity.NodeAffinity
}

// Start is where the clocks of the tests begin.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Cluster is a synced index with a clock that stands still, and a scorer.
type Cluster struct {
	*index.Index
	*scoring.Scorer
	Config config.Configuration
	// Clock is the time of the cluster, which stands still.
	Clock time.Time
}

// New builds a cluster from nodes and pods; namespace team is opted in.
func New(t testing.TB, change func(*config.Configuration), objects ...any) *Cluster {
	t.Helper()
	cfg := config.Default()
	if change != nil {
		change(&cfg)
	}
	if errs := config.Validate(cfg); len(errs) > 0 {
		t.Fatalf("configuration of the test: %v", errs.ToAggregate())
	}
	c := &Cluster{Config: cfg, Clock: Start}
	ix, err := index.New(cfg, func() time.Time { return c.Clock })
	if err != nil {
		t.Fatal(err)
	}
	c.Index, c.Scorer = ix, scoring.NewScorer(cfg, ix)
	ix.SetNamespace("team", true)
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			ix.SetNode(o)
		case *corev1.Pod:
			ix.SetPod(o)
		default:
			t.Fatalf("unknown object %T", o)
		}
	}
	ix.SetSynced()
	return c
}

// DecideOn decides about a pod under its own UID.
func (c *Cluster) DecideOn(pod *corev1.Pod) scoring.Decision {
	return c.Decide(context.Background(), scoring.Request{Pod: pod, Namespace: pod.Namespace, UID: pod.UID})
}

// UsedOn returns the GPUs in use on a node, -1 if there is no such node.
func (c *Cluster) UsedOn(node string) int64 {
	states, _ := c.States()
	for _, s := range states {
		if s.Name == node {
			return s.Used.Requests.Get(NVIDIA)
		}
	}
	return -1
}

// Used lists what is used on each node.
func (c *Cluster) Used() map[string]string {
	out := map[string]string{}
	states, _ := c.States()
	for _, s := range states {
		text := ""
		for _, a := range s.Used.Requests {
			text += fmt.Sprintf("%s=%d ", a.Name, a.Value)
		}
		for _, a := range s.Used.Terminating {
			text += fmt.Sprintf("terminating of %s=%d ", a.Name, a.Value)
		}
		for _, a := range s.Used.Occupants {
			text += fmt.Sprintf("occupants of %s=%d ", a.Name, a.Value)
		}
		out[s.Name] = text + fmt.Sprintf("pods=%d cpu=%d memory=%d", s.Used.Pods, s.Used.ScoringCPU, s.Used.ScoringMemory)
	}
	return out
}

// Names are the listed nodes in order.
func Names(d scoring.Decision) []string {
	var out []string
	for _, n := range d.Ranking {
		out = append(out, n.Name)
	}
	return out
}

// StateOf is what the index has of a node, nil for nothing.
func (c *Cluster) StateOf(node string) *nodes.State {
	states, _ := c.States()
	for _, s := range states {
		if s.Name == node {
			return s
		}
	}
	return nil
}

// QueryOf is what to look at the index for, for a pod with GPUs.
func (c *Cluster) QueryOf(pod *corev1.Pod) *index.Query {
	d, _ := demand.Of(pod, c.Config.Resources)
	return &index.Query{Pod: pod, Demand: &d, Namespace: pod.Namespace}
}

// KeepsPool tells whether the index has a pool for pods of this kind.
func (c *Cluster) KeepsPool(pod *corev1.Pod) bool {
	v, err := c.Look(context.Background(), c.QueryOf(pod))
	return err == nil && v.Kept
}

// MustView is View, which cannot fail here.
func (c *Cluster) MustView(t testing.TB, q *index.Query) index.View {
	t.Helper()
	return must(t)(c.View(t.Context(), q))
}

// MustLook is Look, which cannot fail here.
func (c *Cluster) MustLook(t testing.TB, q *index.Query) index.View {
	t.Helper()
	return must(t)(c.Look(t.Context(), q))
}

func must(t testing.TB) func(index.View, error) index.View {
	return func(v index.View, err error) index.View {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
