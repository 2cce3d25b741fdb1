package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// ranked makes of a pod what the webhook does when a node has room.
func ranked(pod *corev1.Pod) error {
	pod.Annotations = map[string]string{config.AnnotationSteering: config.SteeringRanked, config.AnnotationTarget: "gpu-1"}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"gpu-1"}}},
		}}},
	}}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{steering.NeutralConstraint()}
	return nil
}

// late is the same when no node has room.
func late(pod *corev1.Pod) error {
	l := steering.Late{LabelValue: "nvidia.com_gpu", Scope: config.LateScopeNamespace}
	pod.Annotations = map[string]string{config.AnnotationSteering: config.SteeringLate}
	pod.Labels = map[string]string{config.LabelLate: l.LabelValue}
	pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{l.Term()},
	}}
	return nil
}

// refuse is a policy that refuses pods of a kind.
func refuse(kind func(*corev1.Pod) bool) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if kind(pod) {
			return errors.New(`pods "gpu-binpacker-check-x7k2p" is forbidden: the policy says no`)
		}
		return nil
	}
}

func hasNodeAffinity(p *corev1.Pod) bool {
	return p.Spec.Affinity != nil && p.Spec.Affinity.NodeAffinity != nil
}

func hasPodAffinity(p *corev1.Pod) bool {
	return p.Spec.Affinity != nil && p.Spec.Affinity.PodAffinity != nil
}

func isSpread(p *corev1.Pod) bool { return len(p.Spec.TopologySpreadConstraints) > 0 }

func hasOurs(keys map[string]string) bool {
	for key := range keys {
		if strings.HasPrefix(key, config.Domain+"/") {
			return true
		}
	}
	return false
}

func hasOurLabel(p *corev1.Pod) bool      { return hasOurs(p.Labels) }
func hasOurAnnotation(p *corev1.Pod) bool { return hasOurs(p.Annotations) }

func hasTwoTerms(p *corev1.Pod) bool { return len(steering.PreferredTerms(p)) > 1 }

// reachesOut is what the quota scope CrossNamespacePodAffinity counts.
func reachesOut(p *corev1.Pod) bool {
	return hasPodAffinity(p) && slices.ContainsFunc(p.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
		func(t corev1.WeightedPodAffinityTerm) bool { return t.PodAffinityTerm.NamespaceSelector != nil })
}

// refusedTrialCases are pods on trial that are refused because of what the webhook made of
// them, and for other reasons.
func refusedTrialCases() map[string]broken {
	policy := func(trial func(*corev1.Pod) error, kind func(*corev1.Pod) bool) func(*testing.T, *bed) {
		return func(_ *testing.T, b *bed) { b.trial, b.judge = trial, refuse(kind) }
	}
	const because = "GPU pods in team-a are refused because of what gpu-binpacker adds: pods \"gpu-binpacker-check-x7k2p\" is forbidden: the policy says no; opt the namespace out"
	const optOut = "kubectl label namespace team-a gpu-binpacker.io/enabled-"
	return map[string]broken{
		"no node affinity allowed":   {"GB308", policy(ranked, hasNodeAffinity), Failure, because, optOut},
		"no spreading allowed":       {"GB308", policy(ranked, isSpread), Failure, because, optOut},
		"no such annotation allowed": {"GB308", policy(ranked, hasOurAnnotation), Failure, because, optOut},
		"no pod affinity allowed":    {"GB308", policy(late, hasPodAffinity), Failure, because, optOut},
		// The label of the opt-out is refused as well.
		"no such label allowed": {"GB308", policy(late, hasOurLabel), Failure, because, optOut},
		"no GPUs allowed": {"GB308", policy(ranked, func(p *corev1.Pod) bool {
			return asksForGPU(p, config.Default().Resources)
		}), Warning, "does not take a pod", "--namespace"},
		// The quota had room again before anything could be said of the cause.
		"quota with room later": {"GB308", func(_ *testing.T, b *bed) {
			tries := 0
			b.judge = refuse(func(*corev1.Pod) bool { tries++; return tries == 1 })
		}, Warning, "does not take a pod", "--namespace"},
	}
}

// additionCases are about pods that carry by hand what the webhook may add.
func additionCases() map[string]broken {
	judge := func(kind func(*corev1.Pod) bool) func(*testing.T, *bed) {
		return func(_ *testing.T, b *bed) { b.judge = refuse(kind) }
	}
	const refused, optOut = "in team-a, pods are refused because of what gpu-binpacker adds", "kubectl label namespace team-a gpu-binpacker.io/enabled-\n# or let"
	return map[string]broken{
		"everything accepted":       {"GB309", func(*testing.T, *bed) {}, OK, "ranked and late, in team-a", ""},
		"node affinity refused":     {"GB309", judge(hasNodeAffinity), Failure, refused, optOut},
		"several terms refused":     {"GB309", judge(hasTwoTerms), Failure, refused, optOut},
		"constraint refused":        {"GB309", judge(isSpread), Failure, refused, "spreading:\n  default: Keep"},
		"annotations refused":       {"GB309", judge(hasOurAnnotation), Failure, refused, optOut},
		"late affinity refused":     {"GB309", judge(hasPodAffinity), Failure, refused, "lateSteering:\n  mode: \"Off\""},
		"label and opt-out refused": {"GB309", judge(hasOurLabel), Failure, refused, "lateSteering:\n  mode: \"Off\""},
		"only all together refused": {"GB309", judge(func(p *corev1.Pod) bool {
			return hasNodeAffinity(p) && hasOurAnnotation(p)
		}), Failure, refused, optOut},
		"nothing accepted": {"GB309", judge(func(*corev1.Pod) bool { return true }), Skipped, "no pod at all in team-a", ""},
		"one namespace refuses": {"GB309", func(_ *testing.T, b *bed) {
			b.namespace("team-b", "true")
			b.judge = refuse(func(p *corev1.Pod) bool { return p.Namespace == "team-b" && hasNodeAffinity(p) })
		}, Failure, "in team-b, pods", "kubectl label namespace team-b"},
		"affinity across namespaces":            {"GB309", judge(reachesOut), OK, "ranked and late", ""},
		"affinity across namespaces, scope all": {"GB309", reachingOut, Failure, refused, "lateSteering:"},
		"no late steering": {"GB309", func(_ *testing.T, b *bed) {
			b.cfg.LateSteering.Mode, b.judge = config.LateOff, refuse(hasPodAffinity)
		}, OK, "ranked, in team-a", ""},
		"dry-run, only annotations": {"GB309", func(_ *testing.T, b *bed) {
			b.cfg.Mode, b.judge = config.ModeDryRun, refuse(hasNodeAffinity)
		}, OK, "dry-run, in team-a", ""},
		"no nodes yet": {"GB309", func(_ *testing.T, b *bed) { b.nodes = nil }, OK, "late, in team-a", ""},
		"may not try": {"GB309", func(_ *testing.T, b *bed) {
			b.denied = map[string]bool{"create pods": true}
		}, Skipped, "create pods in team-a", ""},
		"may not list nodes": {"GB309", func(_ *testing.T, b *bed) {
			b.denied = map[string]bool{"list nodes": true}
		}, Skipped, "needs", ""},
		"tried where not opted in": {"GB309", func(_ *testing.T, b *bed) { b.options.Namespace = "team-c" }, Skipped, "GB308", ""},
	}
}

func reachingOut(_ *testing.T, b *bed) {
	b.cfg.LateSteering.Scope, b.judge = config.LateScopeCluster, refuse(reachesOut)
}

// What is refused is named, in the words of the policy, and settings help only if they
// leave out all of it.
func TestRefusedAdditionsAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		kind    func(*corev1.Pod) bool
		details []string
		setting bool
	}{
		"node affinity": {hasNodeAffinity, []string{"preferred node affinity"}, false},
		"constraint":    {isSpread, []string{"the topology spread constraint"}, true},
		"annotations":   {hasOurAnnotation, []string{"annotations gpu-binpacker.io/..."}, false},
		"late affinity": {hasPodAffinity, []string{"preferred pod affinity"}, true},
		"label":         {hasOurLabel, []string{"the label gpu-binpacker.io/late"}, true},
		"both kinds of affinity": {
			func(p *corev1.Pod) bool { return p.Spec.Affinity != nil },
			[]string{"preferred node affinity", "preferred pod affinity"}, false,
		},
		"together": {
			func(p *corev1.Pod) bool { return hasNodeAffinity(p) && hasOurAnnotation(p) },
			[]string{"all of it together"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := healthy(t)
			b.judge = refuse(tc.kind)
			got := find(t, Run(t.Context(), b.clients(t)), "GB309")
			var want []string
			for _, what := range tc.details {
				want = append(want, "team-a: "+what+": forbidden: the policy says no")
			}
			if !slices.Equal(got.Details, want) {
				t.Errorf("details %q, want %q", got.Details, want)
			}
			if setting := slices.Contains(got.Fix, "# or leave it out, in the configuration:"); setting != tc.setting {
				t.Errorf("fix %q", got.Fix)
			}
		})
	}
}

// A bound on the namespaces that are tried keeps the check short.
func TestAdditionsAreTriedInSomeNamespaces(t *testing.T) {
	for _, namespaces := range []int{mostTried, mostTried + 1} {
		b := healthy(t)
		b.namespaces = nil
		for i := range namespaces {
			b.namespace(fmt.Sprintf("team-%02d", i), "true")
		}
		tried := map[string]bool{}
		b.judge = func(pod *corev1.Pod) error { tried[pod.Namespace] = true; return nil }
		got := find(t, Run(t.Context(), b.clients(t)), "GB309")
		if got.Level != OK || len(tried) != mostTried {
			t.Errorf("%d of %d namespaces tried, %s: %s", len(tried), namespaces, got.Level, got.Message)
		}
		if more := len(got.Details) > 0; more != (namespaces > mostTried) {
			t.Errorf("%d namespaces: details %q", namespaces, got.Details)
		}
	}
}
