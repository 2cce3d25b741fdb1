package config_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// FuzzParse reads arbitrary files. A valid configuration survives being written
// and read again, and everything that is built from it can be built and used.
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
		header + "scheduler: {scoringStrategy: {type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 5}]}}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := config.Parse(data)
		if err != nil || len(config.Validate(cfg)) > 0 {
			return
		}
		useConfiguration(t, cfg)
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

// useConfiguration decides about a pod under the configuration, and has the API
// server's own compiler take its match conditions.
func useConfiguration(t *testing.T, cfg config.Configuration) {
	t.Helper()
	if len(cfg.Resources.Names)+len(cfg.Resources.Prefixes) < 20 { // the API server's cost limit has its own test
		compile(t, cfg.Resources)
	}
	index, err := scoring.NewIndex(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	name := corev1.ResourceName("")
	if len(cfg.Resources.Names) > 0 {
		name = corev1.ResourceName(cfg.Resources.Names[0])
	} else {
		name = corev1.ResourceName(cfg.Resources.Prefixes[0] + "x")
	}
	for _, node := range []string{"g1", "g2", "g3"} {
		index.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{name: resource.MustParse("8"), "cpu": resource.MustParse("64"), "pods": resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}})
	}
	index.SetSynced()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{name: resource.MustParse("1")},
	}}}}}
	decision := scoring.NewScorer(cfg, index).Decide(t.Context(), scoring.Request{Pod: pod, Namespace: "team-a", UID: "u"})
	if decision.Reason != scoring.ReasonNone || len(decision.Ranking) == 0 {
		// A selector that excludes nodes without some label may exclude all.
		if cfg.Nodes.ExcludeSelector == nil {
			t.Errorf("decision %+v", decision)
		}
	}
	for _, n := range decision.Ranking {
		if n.Weight < 1 || n.Weight > 100 {
			t.Errorf("weight %d of %s", n.Weight, n.Name)
		}
	}
}
