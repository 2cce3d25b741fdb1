package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Product is our index and scorer.
type Product struct {
	Index  *index.Index
	Scorer *scoring.Scorer
}

// NewProduct builds the product; its index holds the nodes and pods, in this order,
// and is synchronised. now is the clock of the index.
func NewProduct(t testing.TB, cfg config.Configuration, now func() time.Time, nodes []*corev1.Node, pods []*corev1.Pod) *Product {
	t.Helper()
	if errs := config.Validate(cfg); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	ix, err := index.New(cfg, now)
	if err != nil {
		t.Fatal(err)
	}
	ix.SetNamespace(Team, true)
	for _, n := range nodes {
		ix.SetNode(n)
	}
	for _, p := range pods {
		ix.SetPod(p)
	}
	ix.SetSynced()
	return &Product{Index: ix, Scorer: scoring.NewScorer(cfg, ix)}
}

// Decide is the decision about a pod as the user sends it; nothing is reserved.
func (p *Product) Decide(pod *corev1.Pod) scoring.Decision {
	return p.Scorer.Decide(context.Background(), scoring.Request{Pod: pod, Namespace: pod.Namespace, UID: pod.UID, DryRun: true})
}

// Steered returns the pod with the decision on it, as it leaves our webhook. That
// the webhook builds this very pod is tested in package webhook.
func Steered(pod *corev1.Pod, d scoring.Decision) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, n := range d.Ranking {
		preferred := &NodeAffinityOf(pod).PreferredDuringSchedulingIgnoredDuringExecution
		*preferred = append(*preferred, corev1.PreferredSchedulingTerm{Weight: n.Weight, Preference: corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{n.Name}}},
		}})
	}
	if d.NeutralizeSpreading && len(pod.Spec.TopologySpreadConstraints) == 0 {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{steering.NeutralConstraint()}
	}
	if d.Late != nil {
		addLate(pod, d.Late)
	}
	return pod
}

// addLate puts late steering on a pod.
func addLate(pod *corev1.Pod, late *steering.Late) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[config.LabelLate] = late.LabelValue
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{late.Term()},
	}
}
