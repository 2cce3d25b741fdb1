package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// schemaNode is the part of JSON schema that the tests look at.
type schemaNode struct {
	Enum       []string               `json:"enum"`
	Type       string                 `json:"type"`
	Minimum    *int                   `json:"minimum"`
	Maximum    *int                   `json:"maximum"`
	Properties map[string]*schemaNode `json:"properties"`
}

// The schema of `configuration` knows the settings of the product, all of them and
// no others.
func TestSchemaKnowsEverySetting(t *testing.T) {
	want, got := slices.Sorted(maps.Keys(productSettings(t))), slices.Sorted(maps.Keys(schemaSettings(t)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-product +schema):\n%s", diff)
	}
}

// Where the product has a list of values, the schema has the same.
func TestSchemaKnowsEveryValue(t *testing.T) {
	want := map[string][]string{}
	for setting, value := range productSettings(t) {
		if _, isText := value.(string); !isText {
			continue
		}
		for _, err := range refusals(t, setting, "Bogus") {
			if err.Type == field.ErrorTypeNotSupported {
				want[setting] = supported(err)
			}
		}
	}
	got := map[string][]string{}
	for setting, schema := range schemaSettings(t) {
		if len(schema.Enum) > 0 {
			got[setting] = slices.Sorted(slices.Values(schema.Enum))
		}
	}
	if len(want) < 10 {
		t.Errorf("found %d settings with a list of values, so the test misses them", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-product +schema):\n%s", diff)
	}
}

// Where the product has a range, the schema has the same.
func TestSchemaKnowsEveryRange(t *testing.T) {
	ranges := 0
	for setting, schema := range schemaSettings(t) {
		if schema.Type != "integer" || setting == "server.webhookPort" {
			continue
		}
		ranges++
		if schema.Minimum == nil || schema.Maximum == nil {
			t.Errorf("%s has no range in the schema", setting)
			continue
		}
		for value, want := range map[int]bool{*schema.Minimum - 1: false, *schema.Minimum: true, *schema.Maximum: true, *schema.Maximum + 1: false} {
			if got := len(refusals(t, setting, value)) == 0; got != want {
				t.Errorf("%s: %d is accepted by the product: %v, by the schema: %v", setting, value, got, want)
			}
		}
	}
	if ranges < 10 {
		t.Errorf("found %d settings with a range, so the test misses them", ranges)
	}
}

// productSettings are the settings of the product with their defaults.
func productSettings(t *testing.T) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	delete(decoded, "apiVersion")
	delete(decoded, "kind")
	// Left out of the encoding, since they have no default.
	all := map[string]any{"nodes.excludeSelector": nil, "scheduler.kubernetesVersion": nil, "scheduler.scoringStrategy.requestedToCapacityRatio.shape": nil}
	var walk func(prefix string, value any)
	walk = func(prefix string, value any) {
		nested, isMap := value.(map[string]any)
		if !isMap {
			all[strings.TrimSuffix(prefix, ".")] = value
		}
		for key, child := range nested {
			walk(prefix+key+".", child)
		}
	}
	walk("", decoded)
	return all
}

// schemaSettings are the settings in the schema of `configuration`.
func schemaSettings(t *testing.T) map[string]*schemaNode {
	t.Helper()
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var whole schemaNode
	if err := json.Unmarshal(content, &whole); err != nil {
		t.Fatal(err)
	}
	all := map[string]*schemaNode{}
	var walk func(prefix string, node *schemaNode)
	walk = func(prefix string, node *schemaNode) {
		path := strings.TrimSuffix(prefix, ".")
		// A label selector is one setting.
		if len(node.Properties) == 0 || path == "nodes.excludeSelector" {
			all[path] = node
			return
		}
		for key, child := range node.Properties {
			walk(prefix+key+".", child)
		}
	}
	walk("", whole.Properties["configuration"])
	return all
}

// refusals are what the product says about one setting with that value. A value that
// cannot be decoded is not judged here.
func refusals(t *testing.T, setting string, value any) []*field.Error {
	t.Helper()
	content := set(setting, value)
	content["apiVersion"], content["kind"] = config.APIVersion, config.Kind
	file, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := config.Parse(file)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(config.Validate(parsed), func(err *field.Error) bool { return err.Field != setting })
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// supported are the values that an error of type NotSupported names, sorted.
func supported(err *field.Error) []string {
	var all []string
	for _, match := range quoted.FindAllStringSubmatch(err.Detail, -1) {
		all = append(all, match[1])
	}
	return slices.Sorted(slices.Values(all))
}
