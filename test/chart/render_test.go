package chart

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// The two ways of installing give the same objects. What must differ, and nothing
// else, is taken out by likeChart and likeKustomize.
func TestRendersWhatKustomizeRenders(t *testing.T) {
	monitoring := values{"metrics": values{
		"serviceMonitor": values{"enabled": true}, "prometheusRule": values{"enabled": true}, "dashboard": values{"enabled": true},
	}}
	for name, tc := range map[string]struct {
		values  values
		folders []string
	}{
		"defaults":     {nil, []string{"default"}},
		"gke-private":  {set("webhook.port", 10250), []string{"overlays/gke-private"}},
		"host-network": {set("hostNetwork", true), []string{"overlays/host-network"}},
		"monitoring":   {monitoring, []string{"default", "prometheus", "grafana"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := objects{}
			for _, folder := range tc.folders {
				maps.Copy(want, kustomized(t, folder))
			}
			wantContent, gotContent := likeChart(t, want), likeKustomize(t, charted(t, tc.values))
			if diff := cmp.Diff(wantContent, gotContent); diff != "" {
				t.Errorf("objects (-kustomize +chart):\n%s", diff)
			}
		})
	}
}

// The normalisation must not hide differences: each of these changes one value, and
// the comparison must see it.
func TestDifferencesAreNoticed(t *testing.T) {
	defaults := likeKustomize(t, charted(t, nil))
	for name, given := range map[string]values{
		"configuration": set("configuration.mode", "DryRun"),
		"resources":     set("configuration.resources.names", []any{"example.com/gpu"}),
		"image":         set("image.tag", "other"),
		"replicas":      set("replicas", 3),
		"namespaces":    set("webhook.excludedNamespaces", []any{"kube-system"}),
		"label":         set("podLabels", values{"team": "a"}),
		"annotation":    set("podAnnotations", values{"team": "a"}),
		"certificate":   set("certManager.duration", "1440h"),
		"budget":        set("podDisruptionBudget.enabled", false),
		"policy":        set("networkPolicy.enabled", false),
	} {
		t.Run(name, func(t *testing.T) {
			if cmp.Equal(defaults, likeKustomize(t, charted(t, given))) {
				t.Errorf("%v makes no difference", given)
			}
		})
	}
}

const (
	configurationName = "gpu-binpacker-configuration"
	configurationKey  = "ConfigMap/" + configurationName
)

// likeChart takes out of kustomize's objects what the chart has in another form: the
// namespace, which Helm does not make from a template, and the hash in the name of
// the ConfigMap, in whose place the chart has a checksum.
func likeChart(t *testing.T, from objects) map[string]any {
	t.Helper()
	content := map[string]any{}
	for key, object := range from {
		switch {
		case key == "Namespace/"+Namespace:
			continue
		case strings.HasPrefix(key, configurationKey+"-"):
			key = configurationKey
			object.SetName(configurationName)
		case key == "Deployment/gpu-binpacker":
			volumes, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "volumes")
			if err != nil {
				t.Fatal(err)
			}
			configMap := volumes[0].(map[string]any)["configMap"].(map[string]any)
			if !strings.HasPrefix(configMap["name"].(string), configurationName+"-") {
				t.Fatalf("the first volume is %v", volumes[0])
			}
			configMap["name"] = configurationName
			if err := unstructured.SetNestedSlice(object.Object, volumes, "spec", "template", "spec", "volumes"); err != nil {
				t.Fatal(err)
			}
		}
		content[key] = object.Object
	}
	if len(content) != len(from)-1 {
		t.Errorf("%v has no Namespace %s", from.names(), Namespace)
	}
	parseConfiguration(t, content)
	return content
}

// likeKustomize takes out of the chart's objects what kustomize does not have:
// Helm's usual labels, which every object must carry, and the checksum.
func likeKustomize(t *testing.T, from objects) map[string]any {
	t.Helper()
	content := map[string]any{}
	for key, object := range from {
		labels := object.GetLabels()
		for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
			if labels[label] == "" {
				t.Errorf("%s has no label %s", key, label)
			}
			delete(labels, label)
		}
		object.SetLabels(labels)
		if key == "Deployment/gpu-binpacker" {
			checksum := []string{"spec", "template", "metadata", "annotations", "checksum/configuration"}
			if value, _, _ := unstructured.NestedString(object.Object, checksum...); len(value) != 64 {
				t.Errorf("the checksum of the configuration is %q", value)
			}
			unstructured.RemoveNestedField(object.Object, checksum...)
		}
		content[key] = object.Object
	}
	parseConfiguration(t, content)
	return content
}

// parseConfiguration replaces the configuration file, which may leave out what is
// the default, by what the product reads from it.
func parseConfiguration(t *testing.T, content map[string]any) {
	t.Helper()
	data := content[configurationKey].(map[string]any)["data"].(map[string]any)
	parsed, err := config.Parse([]byte(data["configuration.yaml"].(string)))
	if err != nil {
		t.Fatal(err)
	}
	if errs := config.Validate(parsed); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	data["configuration.yaml"] = parsed
}
