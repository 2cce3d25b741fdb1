package scoring

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const (
	nvidia = "nvidia.com/gpu"
	mig    = "nvidia.com/mig-1g.5gb"
	amd    = "amd.com/gpu"
)

// list builds a resource list from name, quantity pairs.
func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// nodeOption changes a node under construction.
type nodeOption func(*corev1.Node)

// gpuNode is a ready node with 96 CPUs, 1152 GiB, and the given resources.
func gpuNode(name string, resources corev1.ResourceList, options ...nodeOption) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: list("cpu", "96", "memory", "1152Gi", "pods", "110"),
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

func tainted(key string, effect corev1.TaintEffect) nodeOption {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

func labelled(key, value string) nodeOption {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func unready(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

func withCPU(cpu, memory string) nodeOption {
	return func(n *corev1.Node) {
		n.Status.Allocatable["cpu"], n.Status.Allocatable["memory"] = resource.MustParse(cpu), resource.MustParse(memory)
	}
}

func withImage(name string, size int64) nodeOption {
	return func(n *corev1.Node) {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{name}, SizeBytes: size})
	}
}

// podOption changes a pod under construction.
type podOption func(*corev1.Pod)

// gpuPod is a pod in namespace team whose one container limits the resources.
func gpuPod(uid string, resources corev1.ResourceList, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "team", UID: types.UID(uid), CreationTimestamp: metav1.Time{Time: testStart}},
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

func on(node string) podOption {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning }
}

func phase(ph corev1.PodPhase) podOption { return func(p *corev1.Pod) { p.Status.Phase = ph } }

func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: testStart} }

func ownedByDaemonSet(p *corev1.Pod) {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &yes}}
}

func tolerating(t corev1.Toleration) podOption {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

// preferring adds a preferred node-affinity term of the user.
func preferring(weight int32, key, value string) podOption {
	return func(p *corev1.Pod) {
		nodes := nodeAffinityOf(p)
		nodes.PreferredDuringSchedulingIgnoredDuringExecution = append(nodes.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
			}}})
	}
}

// steeredTo makes the pod look as if we had steered it to a node.
func steeredTo(node string, admission types.UID) podOption {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{config.AnnotationTarget: node, config.AnnotationAdmission: string(admission)}
		nodes := nodeAffinityOf(p)
		nodes.PreferredDuringSchedulingIgnoredDuringExecution = append(nodes.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			}}})
	}
}

func nodeAffinityOf(p *corev1.Pod) *corev1.NodeAffinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return p.Spec.Affinity.NodeAffinity
}

// testStart is where the clocks of the tests begin.
var testStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// testCluster is a synced index with a clock that stands still, and a scorer.
type testCluster struct {
	*Index
	*Scorer
	clock time.Time
}

// newCluster builds a cluster from nodes and pods; namespace team is opted in.
func newCluster(t testing.TB, change func(*config.Configuration), objects ...any) *testCluster {
	t.Helper()
	cfg := config.Default()
	if change != nil {
		change(&cfg)
	}
	if errs := config.Validate(cfg); len(errs) > 0 {
		t.Fatalf("configuration of the test: %v", errs.ToAggregate())
	}
	c := &testCluster{clock: testStart}
	index, err := NewIndex(cfg, func() time.Time { return c.clock })
	if err != nil {
		t.Fatal(err)
	}
	c.Index, c.Scorer = index, NewScorer(cfg, index)
	index.SetNamespace("team", true)
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			index.SetNode(o)
		case *corev1.Pod:
			index.SetPod(o)
		default:
			t.Fatalf("unknown object %T", o)
		}
	}
	index.SetSynced()
	return c
}

// decide decides about a pod under its own UID.
func (c *testCluster) decide(pod *corev1.Pod) Decision {
	return c.Decide(context.Background(), Request{Pod: pod, Namespace: pod.Namespace, UID: pod.UID})
}

// names are the listed nodes in order.
func names(d Decision) []string {
	var out []string
	for _, n := range d.Ranking {
		out = append(out, n.Name)
	}
	return out
}

// snapshot is what decisions depend on, now.
type snapshot struct {
	nodes  []*nodeState
	images imageTable
	perGPU companions
}

func (c *testCluster) snapshot() snapshot {
	ix := c.Index
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.expire(ix.now())
	return snapshot{nodes: slices.Clone(ix.usage.list), images: ix.images.table, perGPU: ix.ledger.perGPU.median()}
}

// setReplicas replaces what the index assumes of other replicas.
func (c *testCluster) setReplicas(r replicas) {
	r.usage, r.maxTerms = c.replicas.usage, c.replicas.maxTerms
	*c.replicas = r
}

// viewOf is what a decision about the pod looks at.
func (c *testCluster) viewOf(pod *corev1.Pod, demand *Demand) View {
	return c.View(&Query{Pod: pod, Demand: demand, Namespace: pod.Namespace})
}
