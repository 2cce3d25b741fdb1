package packaging

import (
	"fmt"
	"maps"
	"math"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const (
	name        = "gpu-binpacker"
	servingCert = "gpu-binpacker-serving-cert"
)

// The whole installation, so that nothing comes in or gets lost by accident.
func TestInstallationHasExactlyTheseObjects(t *testing.T) {
	got := installation(t)
	names := got.names()
	for i, object := range names {
		// The ConfigMap's name ends in a hash of its content.
		if rest, ok := strings.CutPrefix(object, "ConfigMap/gpu-binpacker-configuration-"); ok && len(rest) == 10 {
			names[i] = "ConfigMap/gpu-binpacker-configuration"
		}
	}
	want := []string{
		"Namespace/gpu-binpacker-system",
		"ServiceAccount/gpu-binpacker",
		"ClusterRole/gpu-binpacker",
		"ClusterRole/gpu-binpacker-metrics-reader",
		"ClusterRoleBinding/gpu-binpacker",
		"ConfigMap/gpu-binpacker-configuration",
		"Service/gpu-binpacker",
		"Service/gpu-binpacker-metrics",
		"Deployment/gpu-binpacker",
		"PodDisruptionBudget/gpu-binpacker",
		"Certificate/gpu-binpacker-ca",
		"Certificate/gpu-binpacker-serving",
		"Issuer/gpu-binpacker-ca",
		"Issuer/gpu-binpacker-selfsigned",
		"NetworkPolicy/gpu-binpacker",
		"MutatingWebhookConfiguration/zz-gpu-binpacker",
	}
	if first, last := names[0], names[len(names)-1]; first != want[0] || last != want[len(want)-1] {
		t.Errorf("the first object is %s and the last %s, want the namespace and the webhook", first, last)
	}
	slices.Sort(names)
	slices.Sort(want)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	for _, object := range got {
		switch object.(type) {
		case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *admissionregistrationv1.MutatingWebhookConfiguration:
		default:
			if object.GetNamespace() != config.SystemNamespace {
				t.Errorf("%T %s is in namespace %q, want %q", object, object.GetName(), object.GetNamespace(), config.SystemNamespace)
			}
		}
		if got := object.GetLabels()["app.kubernetes.io/name"]; got != name {
			t.Errorf("%T %s has the name label %q, want %q", object, object.GetName(), got, name)
		}
	}
}

// A test that nothing is misspelt is worth something only if it would notice.
func TestMistakesAreNoticed(t *testing.T) {
	rendered := render(t, "default")
	for mistake, tc := range map[string]struct{ old, new string }{
		"field":            {"failurePolicy: Ignore", "failurePolcy: Ignore"},
		"case of a field":  {"failurePolicy: Ignore", "FailurePolicy: Ignore"},
		"nested field":     {"allowPrivilegeEscalation: false", "allowPrivilegeEscalations: false"},
		"repeated field":   {"failurePolicy: Ignore", "failurePolicy: Ignore\n  failurePolicy: Fail"},
		"type of a field":  {"timeoutSeconds: 1", "timeoutSeconds: one"},
		"kind":             {"kind: PodDisruptionBudget", "kind: PodDisruptionBudgets"},
		"version":          {"apiVersion: policy/v1", "apiVersion: policy/v2"},
		"cert-manager":     {"renewBefore: 720h", "renewedBefore: 720h"},
		"unknown resource": {"apiVersion: cert-manager.io/v1\nkind: Issuer", "apiVersion: cert-manager.io/v1\nkind: Issuers"},
	} {
		t.Run(mistake, func(t *testing.T) {
			broken := strings.Replace(rendered, tc.old, tc.new, 1)
			if broken == rendered {
				t.Fatalf("the rendered manifests do not contain %q", tc.old)
			}
			if _, err := decodeStrictly(broken); err == nil {
				t.Errorf("%q instead of %q was accepted", tc.new, tc.old)
			}
		})
	}
}

// Design of the webhook's safety: it may fail in any way and no pod is refused.
func TestWebhook(t *testing.T) {
	got := find[*admissionregistrationv1.MutatingWebhookConfiguration](t, installation(t), config.WebhookConfigurationName)
	want := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        config.WebhookConfigurationName,
			Labels:      map[string]string{"app.kubernetes.io/name": name},
			Annotations: map[string]string{"cert-manager.io/inject-ca-from": config.SystemNamespace + "/gpu-binpacker-serving"},
		},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: config.WebhookName,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{
					Namespace: config.SystemNamespace,
					Name:      name,
					Path:      new(config.WebhookPath),
					Port:      new(int32(443)),
				},
				// No CABundle: it would overwrite cert-manager's on every apply.
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups:   []string{""},
					APIVersions: []string{"v1"},
					Resources:   []string{"pods"},
					Scope:       new(admissionregistrationv1.NamespacedScope),
				},
			}},
			FailurePolicy: new(admissionregistrationv1.Ignore),
			MatchPolicy:   new(admissionregistrationv1.Equivalent),
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: config.LabelEnabled, Operator: metav1.LabelSelectorOpIn, Values: []string{"true"}},
				{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{
					"kube-system", "cert-manager", config.SystemNamespace,
				}},
			}},
			ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: config.LabelEnabled, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"false"}},
			}},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			TimeoutSeconds:          new(int32(1)),
			AdmissionReviewVersions: []string{"v1"},
			ReinvocationPolicy:      new(admissionregistrationv1.IfNeededReinvocationPolicy),
			MatchConditions:         config.MatchConditions(config.Default().Resources),
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhook configuration (-want +got):\n%s", diff)
	}
	if strings.Contains(render(t, "default"), "caBundle") {
		t.Error("the manifests contain caBundle")
	}
	// The webhook's own answer must come before the API server stops waiting.
	if deadline := config.Default().Server.DecisionTimeout.Duration; deadline >= time.Second {
		t.Errorf("a decision may take %s, but the API server waits 1s", deadline)
	}
}

// One number or name that differs between these objects, and nobody is called.
func TestPortsFitTogether(t *testing.T) {
	all := installation(t)
	server := config.Default().Server
	want := map[string]int32{
		"webhook": int32(server.WebhookPort),
		"metrics": portOf(t, server.MetricsAddress),
		"health":  portOf(t, server.HealthAddress),
	}
	container := theContainer(t, all)
	got := map[string]int32{}
	for _, port := range container.Ports {
		got[port.Name] = port.ContainerPort
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ports of the container (-configuration +got):\n%s", diff)
	}

	webhook := find[*admissionregistrationv1.MutatingWebhookConfiguration](t, all, config.WebhookConfigurationName)
	called := *webhook.Webhooks[0].ClientConfig.Service.Port
	for service, want := range map[string]corev1.ServicePort{
		name:              {Name: "https", Port: called, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("webhook")},
		name + "-metrics": {Name: "metrics", Port: want["metrics"], Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("metrics")},
	} {
		got := find[*corev1.Service](t, all, service).Spec.Ports
		if diff := cmp.Diff([]corev1.ServicePort{want}, got); diff != "" {
			t.Errorf("ports of Service %s (-want +got):\n%s", service, diff)
		}
	}

	for probe, want := range map[*corev1.Probe]string{container.ReadinessProbe: "/readyz", container.LivenessProbe: "/healthz"} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != want || probe.HTTPGet.Port != intstr.FromString("health") {
			t.Errorf("probe %v, want GET %s on port health", probe, want)
		}
	}
}

func TestNetworkPolicyLetsInWhatIsNeeded(t *testing.T) {
	all := installation(t)
	got := find[*networkingv1.NetworkPolicy](t, all, name).Spec
	open := func(port string) []networkingv1.NetworkPolicyPort {
		return []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromString(port))}}
	}
	want := networkingv1.NetworkPolicySpec{
		PodSelector: *find[*appsv1.Deployment](t, all, name).Spec.Selector,
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{
			{Ports: open("webhook")},
			{Ports: open("health")},
			{
				From: []networkingv1.NetworkPolicyPeer{{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"metrics": "enabled"}},
				}},
				Ports: open("metrics"),
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("NetworkPolicy (-want +got):\n%s", diff)
	}
}

func TestSelectorsMatchThePods(t *testing.T) {
	all := installation(t)
	pods := labels.Set(find[*appsv1.Deployment](t, all, name).Spec.Template.Labels)
	selectors := map[string]labels.Selector{
		"Service":         labels.SelectorFromSet(find[*corev1.Service](t, all, name).Spec.Selector),
		"metrics Service": labels.SelectorFromSet(find[*corev1.Service](t, all, name+"-metrics").Spec.Selector),
		"Deployment":      selector(t, find[*appsv1.Deployment](t, all, name).Spec.Selector),
		"budget":          selector(t, find[*policyv1.PodDisruptionBudget](t, all, name).Spec.Selector),
		"NetworkPolicy":   selector(t, &find[*networkingv1.NetworkPolicy](t, all, name).Spec.PodSelector),
	}
	for i, constraint := range theTemplate(t, all).Spec.TopologySpreadConstraints {
		selectors[fmt.Sprintf("spread constraint %d", i)] = selector(t, constraint.LabelSelector)
	}
	for of, selector := range selectors {
		if selector.Empty() || !selector.Matches(pods) {
			t.Errorf("the selector of the %s is %q, the pods are labelled %q", of, selector, pods)
		}
	}
}

func TestCertificates(t *testing.T) {
	all := installation(t)
	serving := find[*certmanagerv1.Certificate](t, all, "gpu-binpacker-serving").Spec
	ca := find[*certmanagerv1.Certificate](t, all, "gpu-binpacker-ca").Spec

	// The names by which the API server calls the Service.
	service := find[*corev1.Service](t, all, name)
	host := service.Name + "." + service.Namespace + ".svc"
	if diff := cmp.Diff([]string{host, host + ".cluster.local"}, serving.DNSNames); diff != "" {
		t.Errorf("DNS names (-want +got):\n%s", diff)
	}
	if !slices.Contains(serving.Usages, certmanagerv1.UsageServerAuth) {
		t.Errorf("usages of the serving certificate are %v, want server auth among them", serving.Usages)
	}
	if serving.IsCA || !ca.IsCA {
		t.Errorf("isCA is %v for the serving certificate and %v for the CA", serving.IsCA, ca.IsCA)
	}

	// selfSigned -> CA -> serving, through Secrets and Issuers.
	if issuer := find[*certmanagerv1.Issuer](t, all, ca.IssuerRef.Name); issuer.Spec.SelfSigned == nil {
		t.Errorf("the CA's issuer %s is not self-signed", issuer.Name)
	}
	if issuer := find[*certmanagerv1.Issuer](t, all, serving.IssuerRef.Name); issuer.Spec.CA == nil || issuer.Spec.CA.SecretName != ca.SecretName {
		t.Errorf("the serving certificate's issuer %s does not use the CA's Secret %s", issuer.Name, ca.SecretName)
	}
	for certificate, spec := range map[string]certmanagerv1.CertificateSpec{"serving": serving, "CA": ca} {
		if spec.IssuerRef.Kind != "Issuer" || spec.IssuerRef.Group != "cert-manager.io" {
			t.Errorf("issuerRef of the %s certificate is %+v", certificate, spec.IssuerRef)
		}
		if spec.PrivateKey.RotationPolicy != certmanagerv1.RotationPolicyAlways {
			t.Errorf("rotationPolicy of the %s certificate is %q", certificate, spec.PrivateKey.RotationPolicy)
		}
		if spec.RenewBefore.Duration < 14*24*time.Hour || spec.RenewBefore.Duration >= spec.Duration.Duration {
			t.Errorf("the %s certificate lives %s and is renewed %s before the end", certificate, spec.Duration.Duration, spec.RenewBefore.Duration)
		}
	}
	// cert-manager does not renew what a CA signed when it renews the CA, so that
	// the old one must outlive every certificate that it signed.
	if ca.RenewBefore.Duration < serving.Duration.Duration {
		t.Errorf("the CA is renewed %s before its end, but a serving certificate lives %s", ca.RenewBefore.Duration, serving.Duration.Duration)
	}

	// The pod serves what cert-manager writes, from a folder that is updated.
	volumes, mounts := map[string]corev1.Volume{}, map[string]corev1.VolumeMount{}
	for _, volume := range theTemplate(t, all).Spec.Volumes {
		volumes[volume.Name] = volume
	}
	for _, mount := range theContainer(t, all).VolumeMounts {
		mounts[mount.MountPath] = mount
		if !mount.ReadOnly || mount.SubPath != "" || mount.SubPathExpr != "" {
			t.Errorf("mount %+v, want a read-only folder", mount)
		}
	}
	mounted := volumes[mounts[config.Default().Server.CertDir].Name]
	if serving.SecretName != servingCert || mounted.Secret == nil || mounted.Secret.SecretName != servingCert {
		t.Errorf("certificate in Secret %s, mounted %+v, want both %s", serving.SecretName, mounted, servingCert)
	}
	if mode := *mounted.Secret.DefaultMode; mode != 0o440 {
		t.Errorf("the private key has mode %#o, want 0440", mode)
	}
}

// The process reads the file that the ConfigMap holds.
func TestConfigurationIsMounted(t *testing.T) {
	if diff := cmp.Diff(config.Default(), mountedConfiguration(t, installation(t))); diff != "" {
		t.Errorf("mounted configuration (-default +got):\n%s", diff)
	}
}

// mountedConfiguration follows the container's --config through mount and volume
// to the ConfigMap and reads the file there.
func mountedConfiguration(t *testing.T, all objects) config.Configuration {
	t.Helper()
	container := theContainer(t, all)
	if diff := cmp.Diff([]string{"serve", "--config=/etc/gpu-binpacker/config/configuration.yaml"}, container.Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	folder, file := path.Split(strings.TrimPrefix(container.Args[1], "--config="))
	var volume string
	for _, mount := range container.VolumeMounts {
		if mount.MountPath == path.Clean(folder) {
			volume = mount.Name
		}
	}
	for _, v := range theTemplate(t, all).Spec.Volumes {
		if v.Name != volume {
			continue
		}
		got, err := config.Parse([]byte(find[*corev1.ConfigMap](t, all, v.ConfigMap.Name).Data[file]))
		if err != nil {
			t.Fatal(err)
		}
		if errs := config.Validate(got); len(errs) > 0 {
			t.Errorf("mounted configuration: %v", errs.ToAggregate())
		}
		return got
	}
	t.Fatalf("no volume is mounted at %s", folder)
	return config.Configuration{}
}

// All that the product may do; more needs a reason in the documentation.
func TestRBAC(t *testing.T) {
	all := installation(t)
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"get", "list", "watch"}},
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

func selector(t *testing.T, of *metav1.LabelSelector) labels.Selector {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

func portOf(t *testing.T, address string) int32 {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(number)
}
