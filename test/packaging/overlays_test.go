package packaging

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func TestPrivateGKEOverlay(t *testing.T) {
	all := decode(t, render(t, "overlays/gke-private"))
	container := theContainer(t, all)
	if !slices.Contains(container.Args, "--webhook-port=10250") {
		t.Errorf("args %v, want --webhook-port=10250", container.Args)
	}
	if port := container.Ports[0]; port.Name != "webhook" || port.ContainerPort != 10250 {
		t.Errorf("first port %+v, want webhook on 10250", port)
	}
	if result := podSecurity(t, api.LevelRestricted, theTemplate(t, all)); !result.Allowed {
		t.Errorf("restricted refuses the pod: %s", result.ForbiddenDetail())
	}
}

func TestHostNetworkOverlay(t *testing.T) {
	all := decode(t, render(t, "overlays/host-network"))
	spec := theTemplate(t, all).Spec
	if !spec.HostNetwork || spec.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		t.Errorf("hostNetwork %v with dnsPolicy %q", spec.HostNetwork, spec.DNSPolicy)
	}
	// Two replicas on two nodes hold the ports: a rollout must be able to start.
	if update := find[*appsv1.Deployment](t, all, name).Spec.Strategy.RollingUpdate; update.MaxUnavailable.IntValue() != 1 {
		t.Errorf("rolling update %+v, want maxUnavailable 1", update)
	}
	level := api.Level(find[*corev1.Namespace](t, all, config.SystemNamespace).Labels[api.EnforceLevelLabel])
	if result := podSecurity(t, level, theTemplate(t, all)); !result.Allowed {
		t.Errorf("the namespace's level %s refuses the pod: %s", level, result.ForbiddenDetail())
	}
	if result := podSecurity(t, api.LevelBaseline, theTemplate(t, all)); result.Allowed {
		t.Error("baseline allows the pod, so the namespace need not be privileged")
	}
}

// Users change the configuration with the kustomization in docs/operating.md. It
// must change both places that the resource names are in.
func TestDocumentedConfigurationChange(t *testing.T) {
	kustomization := ""
	for _, block := range yamlBlocks.FindAllStringSubmatch(read(t, "docs/operating.md"), -1) {
		if strings.Contains(block[1], "configMapGenerator:") || strings.HasPrefix(block[1], "patches:") {
			kustomization += block[1]
		}
	}
	const base = "../gpu-binpacker/config/default"
	if strings.Count(kustomization, base) != 1 {
		t.Fatalf("docs/operating.md does not use %s once:\n%s", base, kustomization)
	}
	folder := t.TempDir()
	write(t, filepath.Join(folder, "kustomization.yaml"), strings.Replace(kustomization, base, relativePath(t, folder, filepath.Join(root, "config", "default")), 1))
	configuration := filepath.Join(folder, "configuration.yaml")
	write(t, configuration, "apiVersion: gpu-binpacker.io/v1alpha1\nkind: Configuration\nresources: {names: [example.com/gpu], prefixes: []}\n")
	conditions := goCommand(t, root, "run", ".", "match-conditions", "--config", configuration)
	write(t, filepath.Join(folder, "match_conditions.yaml"), conditions)

	all := decode(t, build(t, folder))
	want := config.Resources{Names: []string{"example.com/gpu"}, Prefixes: []string{}}
	if diff := cmp.Diff(want, mountedConfiguration(t, all).Resources); diff != "" {
		t.Errorf("resources in the ConfigMap (-want +got):\n%s", diff)
	}
	webhook := find[*admissionregistrationv1.MutatingWebhookConfiguration](t, all, config.WebhookConfigurationName)
	if diff := cmp.Diff(config.MatchConditions(want), webhook.Webhooks[0].MatchConditions); diff != "" {
		t.Errorf("matchConditions (-want +got):\n%s", diff)
	}
}

var yamlBlocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// relativePath returns the way from one folder to another: kustomize does not take
// absolute ones.
func relativePath(t *testing.T, from, to string) string {
	t.Helper()
	absolute := make([]string, 2)
	for i, folder := range []string{from, to} {
		resolved, err := filepath.EvalSymlinks(folder)
		if err != nil {
			t.Fatal(err)
		}
		if absolute[i], err = filepath.Abs(resolved); err != nil {
			t.Fatal(err)
		}
	}
	relative, err := filepath.Rel(absolute[0], absolute[1])
	if err != nil {
		t.Fatal(err)
	}
	return relative
}

// Samples must be what they say: in an opted-in namespace, pods with one GPU that
// nothing keeps from being packed, except where the sample shows just that.
func TestSamples(t *testing.T) {
	all := decode(t, render(t, "samples"))
	const sampleNamespace = "gpu-binpacker-sample"
	optIn := map[string]string{config.LabelEnabled: "true"}
	if got := find[*corev1.Namespace](t, all, sampleNamespace).Labels; !maps.Equal(got, optIn) {
		t.Errorf("labels of the namespace are %v, want %v", got, optIn)
	}
	pods := map[string]corev1.PodTemplateSpec{}
	for _, object := range all {
		switch object := object.(type) {
		case *corev1.Namespace:
			continue
		case *corev1.Pod:
			pods[object.Name] = corev1.PodTemplateSpec{ObjectMeta: object.ObjectMeta, Spec: object.Spec}
		case *batchv1.Job:
			pods[object.Name] = object.Spec.Template
		case *appsv1.Deployment:
			if !selector(t, object.Spec.Selector).Matches(labels.Set(object.Spec.Template.Labels)) {
				t.Errorf("Deployment %s does not select its own pods", object.Name)
			}
			pods[object.Name] = object.Spec.Template
		default:
			t.Errorf("a sample of type %T", object)
		}
		if object.GetNamespace() != sampleNamespace {
			t.Errorf("%T %s is in namespace %q", object, object.GetName(), object.GetNamespace())
		}
	}
	want := []string{"four-1", "four-2", "four-3", "four-4", "job", "packed", "spread"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(pods))); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	for sample, pod := range pods {
		gpus := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
		if gpus.Value() != 1 || !config.Default().Resources.IsGPU("nvidia.com/gpu") {
			t.Errorf("sample %s asks for %s GPUs, want 1", sample, gpus.String())
		}
		if optedOut := pod.Labels[config.LabelEnabled] == "false"; optedOut != (sample == "spread") {
			t.Errorf("sample %s opted out: %v", sample, optedOut)
		}
		if pod.Spec.Affinity != nil || pod.Spec.TopologySpreadConstraints != nil {
			t.Errorf("sample %s states wishes of its own", sample)
		}
	}
}

// serviceMonitor has the fields of a ServiceMonitor that ours uses, as the
// Prometheus Operator defines them (monitoring.coreos.com/v1).
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port            string `json:"port"`
			Path            string `json:"path"`
			Scheme          string `json:"scheme"`
			BearerTokenFile string `json:"bearerTokenFile"`
			TLSConfig       struct {
				InsecureSkipVerify bool `json:"insecureSkipVerify"`
			} `json:"tlsConfig"`
		} `json:"endpoints"`
	} `json:"spec"`
}

func (s *serviceMonitor) DeepCopyObject() runtime.Object {
	clone := *s
	return &clone
}

// prometheusRule is a PrometheusRule, into which test/observability looks.
type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              runtime.RawExtension `json:"spec"`
}

func (r *prometheusRule) DeepCopyObject() runtime.Object {
	clone := *r
	return &clone
}

func TestServiceMonitorFindsTheMetrics(t *testing.T) {
	monitor := find[*serviceMonitor](t, decode(t, render(t, "prometheus")), name)
	services := map[string]bool{}
	for _, object := range installation(t) {
		service, ok := object.(*corev1.Service)
		if !ok || !selector(t, &monitor.Spec.Selector).Matches(labels.Set(service.Labels)) || service.Namespace != monitor.Namespace {
			continue
		}
		for _, port := range service.Spec.Ports {
			services[service.Name+":"+port.Name] = true
		}
	}
	endpoint := monitor.Spec.Endpoints[0]
	if want := map[string]bool{name + "-metrics:" + endpoint.Port: true}; !maps.Equal(services, want) {
		t.Errorf("the monitor selects %v, want %v", services, want)
	}
	if endpoint.Path != "/metrics" || endpoint.Scheme != "https" || endpoint.BearerTokenFile == "" {
		t.Errorf("endpoint %+v, want /metrics over HTTPS with a token", endpoint)
	}
}
