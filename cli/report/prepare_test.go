package report

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// steered makes a pod look as the webhook leaves it.
func steered(p *corev1.Pod) {
	p.Annotations = map[string]string{config.AnnotationTarget: "n1", config.AnnotationAdmission: "u"}
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{steering.NeutralConstraint()}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 100, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}},
			}},
		}},
	}}
}

// A running pod is judged as the webhook would have judged it when it was created.
func TestPrepare(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   steering.Reason
	}{
		"plain":           {func(*corev1.Pod) {}, steering.ReasonNone},
		"steered":         {steered, steering.ReasonNone},
		"kept apart":      {keptApart, steering.ReasonSpread},
		"opted out":       {func(p *corev1.Pod) { p.Labels = map[string]string{config.LabelEnabled: "false"} }, steering.ReasonOptedOut},
		"other scheduler": {func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }, steering.ReasonOtherScheduler},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod("a", "n1", of(nvidia, "1"), tc.change)
			before := p.DeepCopy()
			got, reason := prepare(config.Default())(&p)
			if reason != tc.want {
				t.Fatalf("reason %q, not %q", reason, tc.want)
			}
			if p.Spec.NodeName != before.Spec.NodeName || len(p.Spec.TopologySpreadConstraints) != len(before.Spec.TopologySpreadConstraints) {
				t.Error("the pod was changed")
			}
			if reason != steering.ReasonNone {
				return
			}
			if got.Spec.NodeName != "" || len(got.Spec.TopologySpreadConstraints) > 0 {
				t.Errorf("node %q, constraints %v", got.Spec.NodeName, got.Spec.TopologySpreadConstraints)
			}
			if a := got.Spec.Affinity; a != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
				t.Error("our terms are still there")
			}
		})
	}
}
