package config_test

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// FuzzParse reads arbitrary files. A valid configuration survives being written
// and read again, and the API server's own compiler takes its match conditions. What
// else is built from one: FuzzConfiguration in package scoring.
func FuzzParse(f *testing.F) {
	defaults, err := yaml.Marshal(config.Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(defaults)
	for _, text := range []string{"", header, header + "mode: DryRun", header + "nodes: {excludeSelector: {matchLabels: {a: b}}}",
		header + "schedulerNames: []", header + "server: {decisionTimeout: 1e3s}", "a: &a [*a]", "- - -", "{", "\x00", header + "---\n" + header,
		header + "resources: {names: [a.b/c], prefixes: [a.b/c-, d.e/]}", header + "resources: {names: [], prefixes: []}",
		header + "weights: {weighting: Equal, maxTerms: 100, tailTerms: 100, margin: 100}", header + "weights: {maxTerms: 1, tailTerms: 0, margin: 1}",
		header + "nodes: {excludeSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}, removalTaints: [a-, b/]}",
		header + "inFlight: {targetMaxAge: 1h, reservationTTL: 100ms}", header + "lateSteering: {mode: Always, scope: Cluster}",
		header + "scheduler: {kubernetesVersion: '1.30', percentageOfNodesToScore: 100, pluginWeights: {nodeAffinity: 1}}", header + "ranking: null", header + "mode: [Steer]",
		header + "scheduler: {scoringStrategy: {type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 5}]}}",
		header + "scheduler: {scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 0, score: 10}, {utilization: 85, score: 0}]}}}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := config.Parse(data)
		if err != nil || len(config.Validate(cfg)) > 0 {
			return
		}
		// Compiling takes long; the default names and the cost limit have tests of their own.
		if r := cfg.Resources; len(r.Names)+len(r.Prefixes) < 20 && !reflect.DeepEqual(r, config.Default().Resources) {
			compile(t, r)
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
