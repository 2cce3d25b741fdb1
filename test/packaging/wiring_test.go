package packaging

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

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
		"other replicas": labels.SelectorFromSet(labels.Set{
			config.LabelName: config.WebhookPodName, config.LabelComponent: config.WebhookPodComponent,
		}),
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
