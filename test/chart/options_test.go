package chart

import (
	"slices"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const deploymentKey = "Deployment/gpu-binpacker"

func TestIssuerOfTheUser(t *testing.T) {
	all := charted(t, set("certManager.issuerRef", values{"name": "internal-ca", "kind": "ClusterIssuer"}))
	got := typed[certmanagerv1.Certificate](t, all, "Certificate/gpu-binpacker-serving").Spec.IssuerRef
	if got.Name != "internal-ca" || got.Kind != "ClusterIssuer" || got.Group != "cert-manager.io" {
		t.Errorf("issuerRef %+v", got)
	}
	for _, key := range all.names() {
		if strings.HasPrefix(key, "Issuer/") || key == "Certificate/gpu-binpacker-ca" {
			t.Errorf("there is %s, though the issuer is given", key)
		}
	}
}

// Whatever the values are: a caBundle of ours would overwrite cert-manager's.
func TestNoCABundle(t *testing.T) {
	if manifest := render(t, nil).Manifest; strings.Contains(manifest, "caBundle:") {
		t.Errorf("the manifest has a caBundle:\n%s", manifest)
	}
}

func TestClientCA(t *testing.T) {
	pod := typed[appsv1.Deployment](t, charted(t, set("webhook.clientCAConfigMap", "callers")), deploymentKey).Spec.Template.Spec
	container := pod.Containers[0]
	mount := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "client-ca" })
	volume := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "client-ca" })
	if mount < 0 || volume < 0 || pod.Volumes[volume].ConfigMap.Name != "callers" {
		t.Fatalf("volumes %+v, mounts %+v", pod.Volumes, container.VolumeMounts)
	}
	if want := "--webhook-client-ca-file=" + container.VolumeMounts[mount].MountPath + "/ca.crt"; !slices.Contains(container.Args, want) {
		t.Errorf("args %v, want %s", container.Args, want)
	}
}

func TestPortsFollowTheConfiguration(t *testing.T) {
	all := charted(t, set("configuration.server", values{"metricsAddress": "127.0.0.1:9000", "healthAddress": ":9001"}))
	ports := map[string]int32{}
	for _, port := range typed[appsv1.Deployment](t, all, deploymentKey).Spec.Template.Spec.Containers[0].Ports {
		ports[port.Name] = port.ContainerPort
	}
	if diff := cmp.Diff(map[string]int32{"webhook": 9443, "metrics": 9000, "health": 9001}, ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}

func TestWithoutMetrics(t *testing.T) {
	all := charted(t, set("configuration.server.metricsAddress", "0"))
	if all["Service/gpu-binpacker-metrics"] != nil {
		t.Error("there is a Service for the metrics")
	}
	for _, port := range typed[appsv1.Deployment](t, all, deploymentKey).Spec.Template.Spec.Containers[0].Ports {
		if port.Name == "metrics" {
			t.Errorf("port %+v", port)
		}
	}
	for _, rule := range typed[networkingv1.NetworkPolicy](t, all, "NetworkPolicy/gpu-binpacker").Spec.Ingress {
		if rule.Ports[0].Port.StrVal == "metrics" {
			t.Errorf("rule %+v", rule)
		}
	}
}

func TestWhoMayCall(t *testing.T) {
	all := charted(t, set("networkPolicy.webhookFrom", []any{set("ipBlock.cidr", "10.0.0.2/32")}))
	rule := typed[networkingv1.NetworkPolicy](t, all, "NetworkPolicy/gpu-binpacker").Spec.Ingress[0]
	if rule.Ports[0].Port.StrVal != "webhook" || len(rule.From) != 1 || rule.From[0].IPBlock.CIDR != "10.0.0.2/32" {
		t.Errorf("first rule %+v", rule)
	}
}

func TestReadersOfMetrics(t *testing.T) {
	all := charted(t, set("metrics.readers", []any{values{"namespace": "monitoring", "name": "prometheus"}}))
	binding := typed[rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding/gpu-binpacker-metrics-reader")
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "monitoring", Name: "prometheus"}}
	if diff := cmp.Diff(want, binding.Subjects); diff != "" || binding.RoleRef.Name != "gpu-binpacker-metrics-reader" {
		t.Errorf("role %s, subjects (-want +got):\n%s", binding.RoleRef.Name, diff)
	}
}

// GOMEMLIMIT is 90 % of the limit, whatever its unit, and only with it the collector
// waits for a larger heap.
func TestMemoryLimit(t *testing.T) {
	for limit, want := range map[string]string{"512Mi": "460MiB", "1Gi": "921MiB", "100Mi": "90MiB"} {
		container := typed[appsv1.Deployment](t, charted(t, set("resources.limits.memory", limit)), deploymentKey).Spec.Template.Spec.Containers[0]
		if diff := cmp.Diff([]corev1.EnvVar{{Name: "GOMEMLIMIT", Value: want}, {Name: "GOGC", Value: "150"}}, container.Env); diff != "" {
			t.Errorf("limit %s: environment (-want +got):\n%s", limit, diff)
		}
	}
	container := typed[appsv1.Deployment](t, charted(t, set("resources.limits", nil)), deploymentKey).Spec.Template.Spec.Containers[0]
	if len(container.Env) != 0 {
		t.Errorf("without a limit: environment %v", container.Env)
	}
}

func TestDigest(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	all := charted(t, set("image", values{"repository": "registry.example.com/gpu-binpacker", "digest": digest}))
	want := "registry.example.com/gpu-binpacker@" + digest
	if got := typed[appsv1.Deployment](t, all, deploymentKey).Spec.Template.Spec.Containers[0].Image; got != want {
		t.Errorf("image %s, want %s", got, want)
	}
}

// In another namespace everything is about that one.
func TestAnotherNamespace(t *testing.T) {
	given := values{"metrics": values{
		"serviceMonitor": values{"enabled": true}, "prometheusRule": values{"enabled": true}, "dashboard": values{"enabled": true},
	}}
	rendered, err := Render(t.Context(), "packing", given)
	if err != nil {
		t.Fatal(err)
	}
	everything := rendered.Manifest + rendered.Info.Notes
	for _, hook := range rendered.Hooks {
		everything += hook.Manifest
	}
	for line := range strings.Lines(everything) {
		if strings.Contains(line, Namespace) {
			t.Errorf("%s is named in %q", Namespace, line)
		}
	}
	for _, object := range decode(t, rendered.Manifest) {
		if namespace := object.GetNamespace(); namespace != "" && namespace != "packing" {
			t.Errorf("%s %s is in namespace %s", object.GetKind(), object.GetName(), namespace)
		}
	}
}

// The namespace of the release is never touched.
func TestExcludedNamespaces(t *testing.T) {
	all := charted(t, set("webhook.excludedNamespaces", []any{"kube-system", "security"}))
	webhook := typed[admissionregistrationv1.MutatingWebhookConfiguration](t, all, "MutatingWebhookConfiguration/"+config.WebhookConfigurationName).Webhooks[0]
	got := webhook.NamespaceSelector.MatchExpressions[1].Values
	if diff := cmp.Diff([]string{"kube-system", "security", Namespace}, got); diff != "" {
		t.Errorf("excluded namespaces (-want +got):\n%s", diff)
	}
}

// The pod of `helm test` may run where nothing but the restricted level may, is not
// taken for a pod of the webhook, and leaves nothing.
func TestTheTestsPod(t *testing.T) {
	all := hooks(t, set("test.namespace", "team-a"))
	pod := typed[corev1.Pod](t, all, "Pod/gpu-binpacker-check")
	if diff := cmp.Diff([]string{"check", "--wait=2m", "--namespace=team-a"}, pod.Spec.Containers[0].Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	if result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
		t.Errorf("restricted refuses the pod: %s", result.ForbiddenDetail())
	}
	for key, want := range typed[appsv1.Deployment](t, charted(t, nil), deploymentKey).Spec.Selector.MatchLabels {
		if key == "app.kubernetes.io/component" && pod.Labels[key] == want {
			t.Errorf("the pod has the label %s=%s, by which the Service selects the webhook's pods", key, want)
		}
	}
	for _, key := range all.names() {
		if policies := all[key].GetAnnotations()["helm.sh/hook-delete-policy"]; !strings.Contains(policies, "hook-succeeded") {
			t.Errorf("%s has the delete policy %q", key, policies)
		}
	}
}

// The only thing that the test may write is the dry run of a pod, and only where the
// user says so.
func TestTheTestsRights(t *testing.T) {
	for name, tc := range map[string]struct {
		values values
		want   []string
	}{
		"reads only":     {nil, nil},
		"tries a pod":    {set("test.namespace", "team-a"), []string{"Role/gpu-binpacker-check-pod create pods"}},
		"with an issuer": {set("certManager.issuerRef", values{"name": "ca"}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var writes []string
			all := hooks(t, tc.values)
			for _, key := range all.names() {
				if !strings.HasPrefix(key, "Role/") && !strings.HasPrefix(key, "ClusterRole/") {
					continue
				}
				for _, rule := range typed[rbacv1.Role](t, all, key).Rules {
					for _, verb := range rule.Verbs {
						if verb != "get" && verb != "list" {
							writes = append(writes, key+" "+verb+" "+strings.Join(rule.Resources, ","))
						}
					}
				}
			}
			if diff := cmp.Diff(tc.want, writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// The notes are the next three commands, with the user's values.
func TestNotes(t *testing.T) {
	notes := render(t, set("test.namespace", "research")).Info.Notes
	last := 0
	for _, want := range []string{
		"kubectl label namespace research " + config.LabelEnabled + "=true\n",
		"gpu-binpacker check --wait 2m --namespace research\n",
		"gpu-binpacker explain -f pod.yaml --namespace research\n",
		"gpu-binpacker-serving-cert and gpu-binpacker-ca.",
	} {
		at := strings.Index(notes, want)
		if at < last {
			t.Errorf("the notes do not say %q, or not in this place:\n%s", want, notes)
		}
		last = max(at, last)
	}
	if strings.Contains(notes, "privileged") {
		t.Errorf("the notes speak of the host's network:\n%s", notes)
	}
	if notes := render(t, set("hostNetwork", true)).Info.Notes; !strings.Contains(notes, "enforce=privileged") {
		t.Errorf("with the host's network the notes say nothing about the namespace:\n%s", notes)
	}
}
