package nodes_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// texts are so many of that length, all different.
func texts(count, length int) []string {
	out := make([]string, count)
	for i := range out {
		out[i] = fmt.Sprintf("%0*d", length, i)
	}
	return out
}

// expressions are so many requirements that every node meets.
func expressions(count int) []corev1.NodeSelectorRequirement {
	out := make([]corev1.NodeSelectorRequirement, count)
	for i, key := range texts(count, 10) {
		out[i] = corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpDoesNotExist}
	}
	return out
}

func notIn(key string, values []string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpNotIn, Values: values}
}

func requiring(terms ...corev1.NodeSelectorTerm) clustertest.PodOption {
	return func(p *corev1.Pod) {
		clustertest.NodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
}

// preferringTerms adds so many preferred terms with so many requirements each.
func preferringTerms(count, requirements int) clustertest.PodOption {
	return func(p *corev1.Pod) {
		for range count {
			affinity := clustertest.NodeAffinityOf(p)
			affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: expressions(requirements)}})
		}
	}
}

func selecting(count, length int) clustertest.PodOption {
	return func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{}
		for _, key := range texts(count, length) {
			p.Spec.NodeSelector[key] = "x"
		}
	}
}

// A pod with more constraints than any real one is left alone at once, and no pool keeps
// them: comparing them with every node would hold up everybody.
func TestConstraintsTooLarge(t *testing.T) {
	fields := func(values []string) clustertest.PodOption {
		return requiring(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{notIn(metav1.ObjectNameField, values)}})
	}
	inExpressions := func(values []string) clustertest.PodOption {
		return requiring(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{notIn("a", values)}})
	}
	empty := make([]corev1.NodeSelectorTerm, 201)
	for name, tc := range map[string]struct {
		option   clustertest.PodOption
		tooLarge bool
	}{
		// What is large and honest: a list of hosts, one term each or all in one, and wishes.
		"50 terms":                  {requiring(terms(50, 3)...), false},
		"1,000 values":              {inExpressions(texts(1000, 50)), false},
		"1,000 field values":        {fields(texts(1000, 50)), false},
		"100 preferred terms":       {preferringTerms(100, 2), false},
		"100 tolerations":           {tolerating(100, 60), false},
		"a selector of 20 labels":   {selecting(20, 60), false},
		"requirements up to 200":    {requiring(terms(1, 200)...), false},
		"bytes up to 64 KiB":        {inExpressions(texts(64, 1000)), false},
		"201 requirements":          {requiring(terms(1, 201)...), true},
		"201 terms":                 {requiring(terms(201, 1)...), true},
		"201 empty terms":           {requiring(empty...), true},
		"201 tolerations":           {tolerating(201, 1), true},
		"52,000 field values":       {fields(texts(52_000, 17)), true},
		"4,000 short values":        {inExpressions(texts(4000, 4)), true},
		"66 values of 1,000 bytes":  {inExpressions(texts(66, 1000)), true},
		"66 fields of 1,000 bytes":  {fields(texts(66, 1000)), true},
		"a selector of long labels": {selecting(100, 700), true},
		"long tolerations":          {tolerating(100, 700), true},
		"25,000 preferences":        {preferringTerms(100, 250), true},
		"both kinds of affinity": {func(p *corev1.Pod) {
			requiring(terms(1, 101)...)(p)
			preferringTerms(1, 100)(p)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("m", clustertest.List(clustertest.NVIDIA, "8")))
			pod := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), tc.option)
			d := c.DecideOn(pod)
			if got := d.Reason == steering.ReasonConstraintsTooLarge; got != tc.tooLarge {
				t.Errorf("reason %q", d.Reason)
			}
			if got := c.KeepsPool(pod); got == tc.tooLarge {
				t.Errorf("has a pool: %v", got)
			}
		})
	}
}

// terms are so many with so many requirements each.
func terms(count, requirements int) []corev1.NodeSelectorTerm {
	out := make([]corev1.NodeSelectorTerm, count)
	for i := range out {
		out[i].MatchExpressions = expressions(requirements)
	}
	return out
}

func tolerating(count, length int) clustertest.PodOption {
	return func(p *corev1.Pod) {
		for _, key := range texts(count, length) {
			clustertest.Tolerating(corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})(p)
		}
	}
}

// The more nodes there are, the fewer requirements may be compared with each.
func TestConstraintsByNodes(t *testing.T) {
	for _, tc := range []struct {
		requirements, values, nodes int
		tooLarge                    bool
	}{
		{200, 0, 5_000, false},   // 1,000,000 comparisons
		{200, 0, 5_001, true},    // 1,000,200
		{66, 0, 15_000, false},   // 990,000
		{67, 0, 15_000, true},    // 1,005,000
		{1, 1000, 15_000, false}, // (1 + 1000/16) * 15,000 = 945,000
		{5, 1000, 15_000, true},  // (5 + 1000/16) * 15,000 = 1,005,000
	} {
		all := expressions(tc.requirements)
		all[0] = notIn("a", texts(tc.values, 10))
		pod := clustertest.GPUPod("p", nil, requiring(corev1.NodeSelectorTerm{MatchExpressions: all}))
		if got := nodes.CountConstraints(pod).TooLarge(func() int { return tc.nodes }); got != tc.tooLarge {
			t.Errorf("%d requirements and %d values on %d nodes: too large %v", tc.requirements, tc.values, tc.nodes, got)
		}
	}
	// A usual pod does not even make anybody count the nodes.
	usual := clustertest.GPUPod("p", nil, selecting(5, 60), tolerating(10, 60), preferringTerms(5, 2))
	if nodes.CountConstraints(usual).TooLarge(func() int { t.Error("nodes were counted"); return 0 }) {
		t.Error("a usual pod has too many constraints")
	}
}
