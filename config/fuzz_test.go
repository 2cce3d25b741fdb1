package config_test

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// FuzzParse reads arbitrary files. A valid configuration survives being written
// and read again.
func FuzzParse(f *testing.F) {
	defaults, err := yaml.Marshal(config.Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(defaults)
	for _, text := range []string{"", header, header + "mode: DryRun", header + "nodes: {excludeSelector: {matchLabels: {a: b}}}",
		header + "schedulerNames: []", header + "server: {decisionTimeout: 1e3s}", "a: &a [*a]", "- - -", "{", "\x00", header + "---\n" + header,
		header + "scheduler: {scoringStrategy: {type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 5}]}}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := config.Parse(data)
		if err != nil || len(config.Validate(cfg)) > 0 {
			return
		}
		text, err := yaml.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		again, err := config.Parse(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(cfg, again) {
			t.Errorf("read %+v\nwritten as\n%s\nread %+v", cfg, text, again)
		}
	})
}
