package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/cli/check"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// policyLabel says on a namespace which of the policies below is in force there.
const policyLabel = "e2e.example.com/policy"

// forbidding is a policy that forbids something that we add.
type forbidding struct {
	// expression is true of pods that it accepts.
	expression string
	// broken makes a pod of a user's break it.
	broken func(*corev1.Pod)
	// gpus of a pod of which it forbids what we add.
	gpus int64
	// finds are the codes of the checks that find it, says is what GB309 names.
	finds []string
	says  string
	// noOptOut: it forbids the label of the opt-out as well.
	noOptOut bool
}

func forbiddingPolicies() map[string]forbidding {
	both := []string{"GB308", "GB309"}
	none := func(of string) string {
		return fmt.Sprintf("!has(object.metadata.%[1]s) || object.metadata.%[1]s.all(key, !key.startsWith('gpu-binpacker.io/'))", of)
	}
	const nodeAffinity = "object.spec.affinity.nodeAffinity"
	return map[string]forbidding{
		"node-affinity": {
			expression: "!has(object.spec.affinity) || !has(" + nodeAffinity + ")",
			broken:     preferNodes(1), gpus: 1, finds: both, says: "preferred node affinity",
		},
		"terms": {
			expression: "!has(object.spec.affinity) || !has(" + nodeAffinity + ") || size(" + nodeAffinity + ".preferredDuringSchedulingIgnoredDuringExecution) <= 1",
			broken:     preferNodes(2), gpus: 1, finds: both, says: "preferred node affinity",
		},
		"spread-constraints": {
			expression: "!has(object.spec.topologySpreadConstraints)",
			broken:     spread, gpus: 1, finds: both, says: "the topology spread constraint",
		},
		"annotations": {
			expression: none("annotations"),
			broken:     func(p *corev1.Pod) { p.Annotations = map[string]string{config.Domain + "/note": "x"} },
			gpus:       1, finds: both, says: "annotations",
		},
		// What late steering adds is not on the pod of GB308, for which there is room.
		"labels": {
			expression: none("labels"),
			broken:     func(p *corev1.Pod) { p.Labels = map[string]string{config.Domain + "/note": "x"} },
			gpus:       9, finds: []string{"GB309"}, says: "the label", noOptOut: true,
		},
		"pod-affinity": {
			expression: "!has(object.spec.affinity) || !has(object.spec.affinity.podAffinity)",
			broken: func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{crossNamespace},
				}}
			},
			gpus: 9, finds: []string{"GB309"}, says: "preferred pod affinity",
		},
	}
}

// preferNodes gives the pod that many preferred terms of the user's.
func preferNodes(terms int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		affinity := &corev1.NodeAffinity{}
		for range terms {
			affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: 1, Preference: corev1.NodeSelectorTerm{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "e2e.example.com/disk", Operator: corev1.NodeSelectorOpExists}},
				}})
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
	}
}

// A policy that forbids something that we add refuses pods because of us: the one case in
// which that happens. The check finds it and says what to do, and doing that helps.
func TestForbiddingPolicies(t *testing.T) {
	withNodes(t, controlplane.Nodes("forbidding", 2, node8))
	for name, f := range forbiddingPolicies() {
		t.Run(name, func(t *testing.T) {
			namespace := optedIn(t, "forbidding-"+name)
			f.enforce(t, name, namespace)
			if _, refusal := try(t.Context(), namespace, "steered", gpuPod(f.gpus), client.DryRunAll); !strings.Contains(refusal, "e2e-"+name) {
				t.Errorf("a steered pod is not refused by the policy: %q", refusal)
			}
			out := with(gpuPod(f.gpus), func(p *corev1.Pod) { p.Labels = map[string]string{config.LabelEnabled: "false"} })
			if _, refusal := try(t.Context(), namespace, "opted-out", out, client.DryRunAll); (refusal != "") != f.noOptOut {
				t.Errorf("a pod that opted out: %q", refusal)
			}
			f.check(t, namespace)
			removal := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, config.LabelEnabled))
			if err := cluster.Client().Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, removal); err != nil {
				t.Fatal(err)
			}
			// The API server reads namespaces from a cache of its own.
			eventually(t, "the pod being accepted where nobody opted in", func(ctx context.Context) (bool, error) {
				_, refusal := try(ctx, namespace, "elsewhere", gpuPod(f.gpus), client.DryRunAll)
				return refusal == "", nil
			})
		})
	}
}

// enforce puts the policy in force in the namespace and waits until it is.
func (f *forbidding) enforce(t *testing.T, name, namespace string) {
	t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-" + name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: f.expression}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{policyLabel: name}},
			},
		},
	}
	for _, object := range []client.Object{policy, binding} {
		if err := cluster.Client().Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := cluster.Client().Delete(context.WithoutCancel(t.Context()), object); err != nil {
				t.Error(err)
			}
		})
	}
	label := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, policyLabel, name))
	if err := cluster.Client().Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, label); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policy refusing a user's pod", func(ctx context.Context) (bool, error) {
		_, refusal := try(ctx, namespace, "broken", with(gpuPod(0), f.broken), client.DryRunAll)
		return refusal != "", nil
	})
}

// check runs the command, which has to find the policy and to say how to opt out.
func (f *forbidding) check(t *testing.T, namespace string) {
	t.Helper()
	report, notOK, exitCode := checked(t, "-n", namespace)
	for _, code := range f.finds {
		if notOK[code] != check.Failure {
			t.Errorf("%s: %s", code, notOK[code])
		}
	}
	if exitCode != 1 || len(f.finds) == 1 && notOK["GB308"] != "" {
		t.Errorf("exit code %d, not OK: %v", exitCode, notOK)
	}
	for _, result := range report.Results {
		if notOK[result.Code] != check.Failure || !strings.HasPrefix(result.Code, "GB308") && !strings.HasPrefix(result.Code, "GB309") {
			continue
		}
		text := result.Message + strings.Join(result.Details, "\n")
		if !strings.Contains(text, "ValidatingAdmissionPolicy 'e2e-") || result.Code == "GB309" && !strings.Contains(text, namespace+": "+f.says) {
			t.Errorf("%s names neither policy nor cause: %s", result.Code, text)
		}
		if fix := strings.Join(result.Fix, "\n"); !strings.Contains(fix, "kubectl label namespace "+namespace+" "+config.LabelEnabled+"-") {
			t.Errorf("%s: fix %s", result.Code, fix)
		}
	}
}

// With lateSteering.scope Cluster, a quota on affinity across namespaces refuses pods
// because of us. The check finds that before anybody installs such a configuration.
func TestCheckFindsQuotaOnClusterScope(t *testing.T) {
	withNodes(t, controlplane.Nodes("reaching", 2, node8))
	namespace := optedIn(t, "reaching")
	q := quota(corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}, corev1.ScopedResourceSelectorRequirement{
		ScopeName: corev1.ResourceQuotaScopeCrossNamespacePodAffinity, Operator: corev1.ScopeSelectorOpExists,
	})
	q.Namespace = namespace
	if err := cluster.Client().Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	waitForPolicy(t, namespace, policy{object: q, refuses: "cross-namespace"})
	if _, notOK, _ := checked(t, "-n", namespace); notOK["GB309"] != "" {
		t.Errorf("with the default scope GB309 is %s", notOK["GB309"])
	}
	file := filepath.Join(t.TempDir(), "configuration.yaml")
	text := "apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\nlateSteering: {scope: Cluster}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, notOK, _ := checked(t, "-n", namespace, "--config", file); notOK["GB309"] != check.Failure || notOK["GB308"] != "" {
		t.Errorf("with scope Cluster the results that are not OK are %v", notOK)
	}
}
