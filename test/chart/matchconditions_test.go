package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// One value changes both the decision and the API server's filter.
func TestMatchConditionsFollowTheResources(t *testing.T) {
	for name, resources := range map[string]config.Resources{
		"defaults":     config.Default().Resources,
		"one name":     {Names: []string{"example.com/gpu"}, Prefixes: []string{}},
		"two names":    {Names: []string{"example.com/gpu", "nvidia.com/gpu"}, Prefixes: []string{}},
		"one prefix":   {Names: []string{}, Prefixes: []string{"nvidia.com/mig-"}},
		"two prefixes": {Names: []string{}, Prefixes: []string{"nvidia.com/mig-", "example.com/"}},
		"both":         {Names: []string{"a.example.com/GPU_1.x"}, Prefixes: []string{"example.com/"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := charted(t, set("configuration.resources", values{"names": list(resources.Names), "prefixes": list(resources.Prefixes)}))
			webhook := typed[admissionregistrationv1.MutatingWebhookConfiguration](t, all, "MutatingWebhookConfiguration/"+config.WebhookConfigurationName)
			if diff := cmp.Diff(config.MatchConditions(resources), webhook.Webhooks[0].MatchConditions); diff != "" {
				t.Errorf("matchConditions (-want +got):\n%s", diff)
			}
			content := map[string]any{configurationKey: all[configurationKey].Object}
			parseConfiguration(t, content)
			got := content[configurationKey].(map[string]any)["data"].(map[string]any)["configuration.yaml"].(config.Configuration).Resources
			if diff := cmp.Diff(resources, got); diff != "" {
				t.Errorf("resources in the configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func list(of []string) []any {
	all := make([]any, len(of))
	for i, each := range of {
		all[i] = each
	}
	return all
}
