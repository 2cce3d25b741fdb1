package nodes_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// What makes a difference to a node makes one to the signature; texts that run into
// each other do not hide it.
func TestSignature(t *testing.T) {
	required := func(terms ...corev1.NodeSelectorTerm) clustertest.PodOption {
		return func(p *corev1.Pod) {
			clustertest.NodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
		}
	}
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	expressions := func(r ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: r}
	}
	selector := func(pairs ...string) clustertest.PodOption {
		return func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{}
			for i := 0; i < len(pairs); i += 2 {
				p.Spec.NodeSelector[pairs[i]] = pairs[i+1]
			}
		}
	}
	different := []clustertest.PodOption{
		func(*corev1.Pod) {},
		selector("a", "b"), selector("ab", ""), selector("a", "b", "c", "d"), selector("a", "bc", "d", ""),
		required(), required(expressions()), required(expressions(in("a", "b"))), required(expressions(in("a", "b", "c"))),
		required(expressions(in("a", "b"), in("c"))), required(expressions(in("a", "b")), expressions(in("c"))),
		required(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in("a", "b")}}),
		required(expressions(corev1.NodeSelectorRequirement{Key: "a", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"b"}})),
		clustertest.Tolerating(corev1.Toleration{Key: "a", Value: "b"}), clustertest.Tolerating(corev1.Toleration{Key: "ab"}),
		clustertest.Tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists}),
		clustertest.Tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}),
	}
	seen := map[string]int{}
	for i, option := range different {
		pod := clustertest.GPUPod("p", nil, option)
		text := nodes.Signature(pod)
		if before, ok := seen[text]; ok {
			t.Errorf("variants %d and %d have the signature %q", before, i, text)
		}
		seen[text] = i
		if got := nodes.Signature(nodes.ConstraintsOf(pod)); got != text {
			t.Errorf("variant %d: the reduced pod has the signature %q, want %q", i, got, text)
		}
	}
	a, b := clustertest.GPUPod("p", nil, selector("a", "1", "b", "2")), clustertest.GPUPod("other", clustertest.List(clustertest.NVIDIA, "3"), selector("b", "2", "a", "1"))
	b.Labels, b.Spec.Tolerations = map[string]string{"x": "y"}, nil
	if nodes.Signature(a) != nodes.Signature(b) {
		t.Error("the order of the selector or something else makes a difference")
	}
}
