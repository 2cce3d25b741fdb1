package nodes_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

func TestFeasibility(t *testing.T) {
	everything := clustertest.Tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})
	request := clustertest.List(clustertest.NVIDIA, "1", "cpu", "8")
	now := metav1.Time{Time: clustertest.Start}
	tests := map[string]struct {
		node *corev1.Node
		pods []*corev1.Pod
		pod  *corev1.Pod
		want nodes.Reason
	}{
		"free":                       {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"))},
		"no resource":                {node: clustertest.GPUNode("n", nil), want: nodes.NoResource},
		"allocatable 0":              {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "0")), want: nodes.NoResource},
		"other resource":             {node: clustertest.GPUNode("n", clustertest.List(clustertest.MIG, "7")), want: nodes.NoResource},
		"not ready":                  {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Unready), want: nodes.NotReady},
		"cordoned":                   {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Cordoned), want: nodes.Cordoned},
		"cordoned, though tolerated": {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Cordoned), pod: clustertest.GPUPod("p", request, everything), want: nodes.Cordoned},
		"being deleted":              {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), func(n *corev1.Node) { n.DeletionTimestamp = &now }), want: nodes.Leaving},
		"to be deleted by Cluster Autoscaler, though tolerated": {
			node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Tainted("ToBeDeletedByClusterAutoscaler", corev1.TaintEffectNoSchedule)),
			pod:  clustertest.GPUPod("p", request, everything), want: nodes.Leaving,
		},
		"candidate for deletion": {
			node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Tainted("DeletionCandidateOfClusterAutoscaler", corev1.TaintEffectPreferNoSchedule)), want: nodes.Leaving,
		},
		"disrupted by Karpenter": {
			node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Tainted("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule)), want: nodes.Leaving,
		},
		"interrupted spot node, key by prefix": {
			node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Tainted("aws-node-termination-handler/spot-itn", corev1.TaintEffectNoSchedule)), want: nodes.Leaving,
		},
		"excluded":        {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Labelled("gpu-sharing", "hami")), want: nodes.Excluded},
		"taint":           {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Tainted("team", corev1.TaintEffectNoSchedule)), want: nodes.Tainted},
		"taint NoExecute": {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Tainted("team", corev1.TaintEffectNoExecute)), want: nodes.Tainted},
		"taint tolerated": {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Tainted("team", corev1.TaintEffectNoSchedule)), pod: clustertest.GPUPod("p", request, everything)},
		"soft taint":      {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.Tainted("team", corev1.TaintEffectPreferNoSchedule))},
		"selector":        {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4")), pod: clustertest.GPUPod("p", request, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "x"} }), want: nodes.Affinity},
		"GPUs full":       {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "1")), pods: []*corev1.Pod{clustertest.GPUPod("o", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("n"))}, want: nodes.Insufficient},
		"allocatable below what is used": {
			node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "6")), pods: []*corev1.Pod{clustertest.GPUPod("o", clustertest.List(clustertest.NVIDIA, "7"), clustertest.On("n"))}, want: nodes.Insufficient,
		},
		"CPU full":  {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4"), clustertest.WithCPU("8", "64Gi")), pods: []*corev1.Pod{clustertest.GPUPod("o", clustertest.List("cpu", "1m"), clustertest.On("n"))}, want: nodes.Insufficient},
		"pods full": {node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4", "pods", "1")), pods: []*corev1.Pod{clustertest.GPUPod("o", clustertest.List("cpu", "1m"), clustertest.On("n"))}, want: nodes.Insufficient},
		"other resource missing": {
			node: clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4")), pod: clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1", "rdma/hca", "1")), want: nodes.Insufficient,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New(t, func(cfg *config.Configuration) {
				cfg.Nodes.ExcludeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"gpu-sharing": "hami"}}
			}, tc.node)
			for _, p := range tc.pods {
				c.SetPod(p)
			}
			pod := tc.pod
			if pod == nil {
				pod = clustertest.GPUPod("p", request)
			}
			d, _ := demand.Of(pod, c.Config.Resources)
			filter := nodes.NewFilter(pod, &d)
			got, err := filter.Check(c.StateOf("n"))
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// nodeSelectorTerms are alternatives, expressions within one are not, and
// matchFields and Gt count too.
func TestFeasibilityRequiredTerms(t *testing.T) {
	pod := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"pool": "gpu"}
		clustertest.NodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu-model", Operator: corev1.NodeSelectorOpIn, Values: []string{"h100"}}}},
			{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu-mem-gib", Operator: corev1.NodeSelectorOpGt, Values: []string{"79"}}},
				MatchFields:      []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"g3"}}},
			},
		}}
	})
	gpuPool := clustertest.Labelled("pool", "gpu")
	c := clustertest.New(t, nil,
		clustertest.GPUNode("g1", clustertest.List(clustertest.NVIDIA, "8"), gpuPool, clustertest.Labelled("gpu-model", "h100")),
		clustertest.GPUNode("g2", clustertest.List(clustertest.NVIDIA, "8"), gpuPool, clustertest.Labelled("gpu-mem-gib", "80")),
		clustertest.GPUNode("g3", clustertest.List(clustertest.NVIDIA, "8"), gpuPool, clustertest.Labelled("gpu-mem-gib", "80")),
		clustertest.GPUNode("g4", clustertest.List(clustertest.NVIDIA, "8"), gpuPool, clustertest.Labelled("gpu-mem-gib", "40")),
		clustertest.GPUNode("g5", clustertest.List(clustertest.NVIDIA, "8"), clustertest.Labelled("gpu-model", "h100")),
	)
	got := map[string]bool{}
	for _, n := range clustertest.Names(c.DecideOn(pod)) {
		got[n] = true
	}
	if len(got) != 2 || !got["g1"] || !got["g2"] {
		t.Errorf("candidates %v, want g1 and g2", got)
	}
}
