package agreement

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// product is our index and scorer.
type product struct {
	index  *scoring.Index
	scorer *scoring.Scorer
}

// newProduct builds the product and fills its index.
func newProduct(t testing.TB, cfg config.Configuration, nodes []*corev1.Node, pods []*corev1.Pod) *product {
	t.Helper()
	if errs := config.Validate(cfg); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	index, err := scoring.NewIndex(cfg, func() time.Time { return start })
	if err != nil {
		t.Fatal(err)
	}
	index.SetNamespace(team, true)
	for _, n := range nodes {
		index.SetNode(n)
	}
	for _, p := range pods {
		index.SetPod(p)
	}
	index.SetSynced()
	return &product{index: index, scorer: scoring.NewScorer(cfg, index)}
}

// decide is the decision about a pod as the user sends it; nothing is reserved.
func (p *product) decide(pod *corev1.Pod) scoring.Decision {
	return p.scorer.Decide(context.Background(), scoring.Request{Pod: pod, Namespace: pod.Namespace, UID: pod.UID, DryRun: true})
}

// stored returns the pod as the API server stores it after our webhook, with the
// decision on it and defaults filled in: what the scheduler sees. That the webhook
// builds this very pod is tested in package webhook.
func stored(pod *corev1.Pod, d scoring.Decision) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, n := range d.Ranking {
		preferred := &nodesOf(pod).PreferredDuringSchedulingIgnoredDuringExecution
		*preferred = append(*preferred, corev1.PreferredSchedulingTerm{Weight: n.Weight, Preference: corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{n.Name}}},
		}})
	}
	if d.NeutralizeSpreading && len(pod.Spec.TopologySpreadConstraints) == 0 {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{scoring.NeutralConstraint()}
	}
	if d.Late != nil {
		addLate(pod, d.Late)
	}
	corev1defaults.SetObjectDefaults_Pod(pod)
	return pod
}
