package config_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// The manifests as a whole are tested in test/packaging, whose module may depend
// on what renders them and on cert-manager's types.

const shippedFile = "manager/configuration.yaml"

// The shipped file shows an operator every setting with its default. One that
// says something else would be a lie or a silent change.
func TestShippedConfigurationIsTheDefault(t *testing.T) {
	got := shippedConfiguration(t)
	if want := config.Default(); !reflect.DeepEqual(got, want) {
		t.Errorf("%s is not the default:\n%s", shippedFile, differingLines(asYAML(t, want), asYAML(t, got)))
	}
}

// Since the file is decoded onto the defaults, a setting that is missing in it
// would go unnoticed by the test above.
func TestShippedConfigurationShowsEverySetting(t *testing.T) {
	var shipped, want any
	for from, to := range map[string]*any{readFile(t, shippedFile): &shipped, asYAML(t, config.Default()): &want} {
		if err := yaml.Unmarshal([]byte(from), to); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range missingKeys("", want, shipped) {
		t.Errorf("%s does not show %s", shippedFile, path)
	}
}

// missingKeys returns the paths of the keys of want that got lacks.
func missingKeys(path string, want, got any) []string {
	wantMap, ok := want.(map[string]any)
	if !ok {
		return nil
	}
	gotMap, ok := got.(map[string]any)
	if !ok {
		return []string{path}
	}
	var missing []string
	for key, value := range wantMap {
		if _, ok := gotMap[key]; !ok {
			missing = append(missing, path+"."+key)
			continue
		}
		missing = append(missing, missingKeys(path+"."+key, value, gotMap[key])...)
	}
	return missing
}

func TestMatchConditionsAreUpToDate(t *testing.T) {
	var patch admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "webhook/match_conditions.yaml")), &patch); err != nil {
		t.Fatal(err)
	}
	if patch.Name != config.WebhookConfigurationName || len(patch.Webhooks) != 1 || patch.Webhooks[0].Name != config.WebhookName {
		t.Fatalf("the patch is for %s with %d webhooks, want %s with only %s",
			patch.Name, len(patch.Webhooks), config.WebhookConfigurationName, config.WebhookName)
	}
	want := config.MatchConditions(shippedConfiguration(t).Resources)
	if got := patch.Webhooks[0].MatchConditions; !reflect.DeepEqual(got, want) {
		t.Errorf("webhook/match_conditions.yaml is out of date, run make generate:\n got %v\nwant %v", got, want)
	}
}

// differingLines returns the lines that only one of two texts has.
func differingLines(want, got string) string {
	var lines []string
	for line := range strings.Lines(want) {
		if !strings.Contains(got, line) {
			lines = append(lines, "- "+line)
		}
	}
	for line := range strings.Lines(got) {
		if !strings.Contains(want, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return strings.Join(lines, "")
}

func shippedConfiguration(t *testing.T) config.Configuration {
	t.Helper()
	cfg, err := config.Parse([]byte(readFile(t, shippedFile)))
	if err != nil {
		t.Fatalf("%s: %v", shippedFile, err)
	}
	return cfg
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func asYAML(t *testing.T, value any) string {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
