package steering

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func ownTerm(node string) corev1.PreferredSchedulingTerm {
	return corev1.PreferredSchedulingTerm{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
	}}}
}

func zoneTerm(zone string) corev1.PreferredSchedulingTerm {
	return corev1.PreferredSchedulingTerm{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}},
	}}}
}

func podWith(terms ...corev1.PreferredSchedulingTerm) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
	return pod
}

// Terms of the author's stay, in their order, wherever ours are and however many.
func TestSeparateKeepsTheAuthors(t *testing.T) {
	for _, every := range []int{1, 2, 3, 7} {
		var terms, want []corev1.PreferredSchedulingTerm
		for i := range 5000 {
			if i%every == 0 {
				terms = append(terms, ownTerm(fmt.Sprint("n", i)))
			} else {
				terms = append(terms, zoneTerm(fmt.Sprint(i)))
				want = append(want, terms[i])
			}
		}
		pod := podWith(terms...)
		user, own := Separate(pod)
		if diff := cmp.Diff(want, PreferredTerms(user)); diff != "" {
			t.Errorf("every %d of ours (-want +got):\n%s", every, diff)
		}
		if own.Elements() != len(terms)-len(want) || len(PreferredTerms(pod)) != len(terms) {
			t.Errorf("every %d of ours: %d were found, and the pod has %d", every, own.Elements(), len(PreferredTerms(pod)))
		}
	}
}

// What a replica adds at most, with any configuration, is known as ours; one more is not.
func TestExceeds(t *testing.T) {
	most := podWith()
	for i := range config.MostTerms {
		affinity := most.Spec.Affinity.NodeAffinity
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution, ownTerm(fmt.Sprint("n", i)))
	}
	late := Late{LabelValue: "nvidia.com_gpu", Scope: config.LateScopeNamespace}
	most.Spec.Affinity.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{late.Term()}}
	most.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{NeutralConstraint()}
	if Exceeds(most) {
		t.Error("a pod with all that we may add is taken for another's")
	}
	terms := PreferredTerms(most)
	most.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(slices.Clone(terms), zoneTerm("a"))
	if Exceeds(most) {
		t.Error("a term of the author's counts as ours")
	}
	most.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(slices.Clone(terms), ownTerm("one more"))
	if !Exceeds(most) {
		t.Error("a pod with more than we ever add is taken for ours")
	}
}
