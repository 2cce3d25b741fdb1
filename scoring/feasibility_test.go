package scoring

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func TestFeasibility(t *testing.T) {
	everything := tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})
	request := list(nvidia, "1", "cpu", "8")
	now := metav1.Time{Time: testStart}
	tests := map[string]struct {
		node *corev1.Node
		pods []*corev1.Pod
		pod  *corev1.Pod
		want NodeReason
	}{
		"free":                       {node: gpuNode("n", list(nvidia, "4"))},
		"no resource":                {node: gpuNode("n", nil), want: NodeNoResource},
		"allocatable 0":              {node: gpuNode("n", list(nvidia, "0")), want: NodeNoResource},
		"other resource":             {node: gpuNode("n", list(mig, "7")), want: NodeNoResource},
		"not ready":                  {node: gpuNode("n", list(nvidia, "4"), unready), want: NodeNotReady},
		"cordoned":                   {node: gpuNode("n", list(nvidia, "4"), cordoned), want: NodeCordoned},
		"cordoned, though tolerated": {node: gpuNode("n", list(nvidia, "4"), cordoned), pod: gpuPod("p", request, everything), want: NodeCordoned},
		"being deleted":              {node: gpuNode("n", list(nvidia, "4"), func(n *corev1.Node) { n.DeletionTimestamp = &now }), want: NodeLeaving},
		"to be deleted by Cluster Autoscaler, though tolerated": {
			node: gpuNode("n", list(nvidia, "4"), tainted("ToBeDeletedByClusterAutoscaler", corev1.TaintEffectNoSchedule)),
			pod:  gpuPod("p", request, everything), want: NodeLeaving,
		},
		"candidate for deletion": {
			node: gpuNode("n", list(nvidia, "4"), tainted("DeletionCandidateOfClusterAutoscaler", corev1.TaintEffectPreferNoSchedule)), want: NodeLeaving,
		},
		"disrupted by Karpenter": {
			node: gpuNode("n", list(nvidia, "4"), tainted("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule)), want: NodeLeaving,
		},
		"interrupted spot node, key by prefix": {
			node: gpuNode("n", list(nvidia, "4"), tainted("aws-node-termination-handler/spot-itn", corev1.TaintEffectNoSchedule)), want: NodeLeaving,
		},
		"excluded":        {node: gpuNode("n", list(nvidia, "4"), labelled("gpu-sharing", "hami")), want: NodeExcluded},
		"taint":           {node: gpuNode("n", list(nvidia, "4"), tainted("team", corev1.TaintEffectNoSchedule)), want: NodeTainted},
		"taint NoExecute": {node: gpuNode("n", list(nvidia, "4"), tainted("team", corev1.TaintEffectNoExecute)), want: NodeTainted},
		"taint tolerated": {node: gpuNode("n", list(nvidia, "4"), tainted("team", corev1.TaintEffectNoSchedule)), pod: gpuPod("p", request, everything)},
		"soft taint":      {node: gpuNode("n", list(nvidia, "4"), tainted("team", corev1.TaintEffectPreferNoSchedule))},
		"selector":        {node: gpuNode("n", list(nvidia, "4")), pod: gpuPod("p", request, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "x"} }), want: NodeAffinity},
		"GPUs full":       {node: gpuNode("n", list(nvidia, "1")), pods: []*corev1.Pod{gpuPod("o", list(nvidia, "1"), on("n"))}, want: NodeInsufficient},
		"allocatable below what is used": {
			node: gpuNode("n", list(nvidia, "6")), pods: []*corev1.Pod{gpuPod("o", list(nvidia, "7"), on("n"))}, want: NodeInsufficient,
		},
		"CPU full":  {node: gpuNode("n", list(nvidia, "4"), withCPU("8", "64Gi")), pods: []*corev1.Pod{gpuPod("o", list("cpu", "1m"), on("n"))}, want: NodeInsufficient},
		"pods full": {node: gpuNode("n", list(nvidia, "4", "pods", "1")), pods: []*corev1.Pod{gpuPod("o", list("cpu", "1m"), on("n"))}, want: NodeInsufficient},
		"other resource missing": {
			node: gpuNode("n", list(nvidia, "4")), pod: gpuPod("p", list(nvidia, "1", "rdma/hca", "1")), want: NodeInsufficient,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, func(cfg *config.Configuration) {
				cfg.Nodes.ExcludeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"gpu-sharing": "hami"}}
			}, tc.node)
			for _, p := range tc.pods {
				c.SetPod(p)
			}
			pod := tc.pod
			if pod == nil {
				pod = gpuPod("p", request)
			}
			d, _ := NewDemand(pod, c.Scorer.cfg.Resources)
			filter := newPodFilter(pod, &d)
			got, err := filter.check(c.snapshot().nodes[0])
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// nodeSelectorTerms are alternatives, expressions within one are not, and
// matchFields and Gt count too.
func TestFeasibilityRequiredTerms(t *testing.T) {
	pod := gpuPod("p", list(nvidia, "1"), func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"pool": "gpu"}
		nodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu-model", Operator: corev1.NodeSelectorOpIn, Values: []string{"h100"}}}},
			{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu-mem-gib", Operator: corev1.NodeSelectorOpGt, Values: []string{"79"}}},
				MatchFields:      []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"g3"}}},
			},
		}}
	})
	pool := labelled("pool", "gpu")
	c := newCluster(t, nil,
		gpuNode("g1", list(nvidia, "8"), pool, labelled("gpu-model", "h100")),
		gpuNode("g2", list(nvidia, "8"), pool, labelled("gpu-mem-gib", "80")),
		gpuNode("g3", list(nvidia, "8"), pool, labelled("gpu-mem-gib", "80")),
		gpuNode("g4", list(nvidia, "8"), pool, labelled("gpu-mem-gib", "40")),
		gpuNode("g5", list(nvidia, "8"), labelled("gpu-model", "h100")),
	)
	got := map[string]bool{}
	for _, n := range names(c.decide(pod)) {
		got[n] = true
	}
	if len(got) != 2 || !got["g1"] || !got["g2"] {
		t.Errorf("candidates %v, want g1 and g2", got)
	}
}
