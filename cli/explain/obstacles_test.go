package explain

import (
	"os"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The namespaces that are never called for are those of the shipped manifest.
func TestExcludedNamespaces(t *testing.T) {
	text, err := os.ReadFile("../../config/webhook/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Fatal(err)
	}
	selector := manifest.Webhooks[0].NamespaceSelector
	for _, r := range selector.MatchExpressions {
		if r.Key == corev1.LabelMetadataName && r.Operator == metav1.LabelSelectorOpNotIn {
			if !slices.Equal(r.Values, excludedNamespaces) {
				t.Errorf("the manifest excludes %v, explain knows %v", r.Values, excludedNamespaces)
			}
			return
		}
	}
	t.Errorf("the manifest excludes no namespace: %v", selector)
}
