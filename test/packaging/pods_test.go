package packaging

import (
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// All that the product may do; more needs a reason in the documentation.
func TestRBAC(t *testing.T) {
	all := installation(t)
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}
	role := find[*rbacv1.ClusterRole](t, all, name)
	if diff := cmp.Diff(want, role.Rules); diff != "" || role.AggregationRule != nil {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	binding := find[*rbacv1.ClusterRoleBinding](t, all, name)
	account := find[*corev1.ServiceAccount](t, all, theTemplate(t, all).Spec.ServiceAccountName)
	if binding.RoleRef != (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}) {
		t.Errorf("the binding is to %+v", binding.RoleRef)
	}
	if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}, binding.Subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	reader := find[*rbacv1.ClusterRole](t, all, name+"-metrics-reader")
	if diff := cmp.Diff([]rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}, reader.Rules); diff != "" {
		t.Errorf("rules of the metrics reader (-want +got):\n%s", diff)
	}
}

// Kubernetes' own checks, at the level that the namespace enforces.
func TestPodSecurity(t *testing.T) {
	all := installation(t)
	namespace := find[*corev1.Namespace](t, all, config.SystemNamespace)
	if got := namespace.Labels[api.EnforceLevelLabel]; got != string(api.LevelRestricted) {
		t.Fatalf("the namespace enforces %q, want restricted", got)
	}
	template := theTemplate(t, all)
	if result := podSecurity(t, api.LevelRestricted, template); !result.Allowed {
		t.Errorf("restricted refuses the pod: %s", result.ForbiddenDetail())
	}
	// What restricted does not ask for.
	container := theContainer(t, all)
	if container.SecurityContext.ReadOnlyRootFilesystem == nil || !*container.SecurityContext.ReadOnlyRootFilesystem {
		t.Error("the root file system is writable")
	}
	if user := template.Spec.SecurityContext.RunAsUser; user == nil || *user != 65532 {
		t.Errorf("the user is %v, want distroless' nonroot 65532", user)
	}
}

// podSecurity checks the pod of a template against a Pod Security level.
func podSecurity(t *testing.T, level api.Level, template corev1.PodTemplateSpec) policy.AggregateCheckResult {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	results := evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &template.ObjectMeta, &template.Spec)
	return policy.AggregateCheckResults(results)
}

func TestAvailability(t *testing.T) {
	all := installation(t)
	deployment := find[*appsv1.Deployment](t, all, name)
	spec := deployment.Spec.Template.Spec
	container := theContainer(t, all)
	if *deployment.Spec.Replicas != 2 {
		t.Errorf("%d replicas, want 2", *deployment.Spec.Replicas)
	}
	if update := deployment.Spec.Strategy.RollingUpdate; update.MaxUnavailable.IntValue() != 0 || update.MaxSurge.IntValue() != 1 {
		t.Errorf("rolling update %+v, want a new replica to be ready before an old one goes", update)
	}
	if budget := find[*policyv1.PodDisruptionBudget](t, all, name).Spec; budget.MaxUnavailable == nil || budget.MaxUnavailable.IntValue() != 1 {
		t.Errorf("disruption budget %+v, want maxUnavailable 1", budget)
	}
	spread := map[string]corev1.UnsatisfiableConstraintAction{}
	for _, constraint := range spec.TopologySpreadConstraints {
		spread[constraint.TopologyKey] = constraint.WhenUnsatisfiable
	}
	if want := (map[string]corev1.UnsatisfiableConstraintAction{
		corev1.LabelHostname:     corev1.ScheduleAnyway,
		corev1.LabelTopologyZone: corev1.ScheduleAnyway,
	}); !maps.Equal(spread, want) {
		t.Errorf("spread over %v, want %v", spread, want)
	}
	// Serve on until the Service's endpoints are updated, then finish in order.
	drain := container.Lifecycle.PreStop.Sleep
	if drain == nil || drain.Seconds < 3 || *spec.TerminationGracePeriodSeconds < drain.Seconds+10 {
		t.Errorf("preStop %+v within a grace period of %ds", drain, *spec.TerminationGracePeriodSeconds)
	}

	if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
		t.Errorf("requests %v, want CPU and memory", container.Resources.Requests)
	}
	if _, limited := container.Resources.Limits[corev1.ResourceCPU]; limited {
		t.Error("a CPU limit would throttle answers past their deadline")
	}
	limit := container.Resources.Limits.Memory().Value()
	mebibytes, err := strconv.ParseInt(strings.TrimSuffix(environment(container, "GOMEMLIMIT"), "MiB"), 10, 64)
	if share := float64(mebibytes<<20) / float64(limit); err != nil || math.Abs(share-0.9) > 0.03 {
		t.Errorf("GOMEMLIMIT is %q (%.2f of the limit of %d bytes), want 0.9", environment(container, "GOMEMLIMIT"), share, limit)
	}
}

func theTemplate(t *testing.T, all objects) corev1.PodTemplateSpec {
	t.Helper()
	return find[*appsv1.Deployment](t, all, name).Spec.Template
}

func theContainer(t *testing.T, all objects) corev1.Container {
	t.Helper()
	spec := theTemplate(t, all).Spec
	if len(spec.Containers) != 1 || len(spec.InitContainers) != 0 {
		t.Fatalf("%d containers and %d init containers, want 1 and 0", len(spec.Containers), len(spec.InitContainers))
	}
	return spec.Containers[0]
}
