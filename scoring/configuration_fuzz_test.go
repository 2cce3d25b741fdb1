package scoring_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
)

// FuzzConfiguration reads arbitrary files. Under every valid configuration an index
// and a scorer can be built, and decide.
func FuzzConfiguration(f *testing.F) {
	for _, text := range []string{
		"", "mode: DryRun", "resources: {names: [a.b/c], prefixes: [a.b/c-, d.e/]}", "resources: {names: [], prefixes: [a/]}",
		"ranking: {strategy: MostAllocated, emptyNodes: LargestFirst}", "weights: {weighting: Equal, maxTerms: 100, tailTerms: 100, margin: 100}",
		"weights: {maxTerms: 1, tailTerms: 0, margin: 1}", "nodes: {removalTaints: [a-, b/, c]}", "nodes: {removalTaints: null}",
		"nodes: {excludeSelector: {matchExpressions: [{key: a, operator: NotIn, values: [b]}]}}", "inFlight: {targetMaxAge: 1h, reservationTTL: 100ms}",
		"lateSteering: {mode: Always, scope: Cluster}", "scheduler: {kubernetesVersion: '1.30', percentageOfNodesToScore: 1}",
		"scheduler: {pluginWeights: {nodeAffinity: 1, taintToleration: 100, nodeResourcesFit: 0, balancedAllocation: 0, imageLocality: 0}}",
		"scheduler: {scoringStrategy: {type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 5}]}}", "scheduler: {defaultConstraints: List}",
		"scheduler: {scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 0, score: 10}, {utilization: 85, score: 0}]}}}",
	} {
		f.Add([]byte("apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\n" + text))
	}
	defaults, err := yaml.Marshal(config.Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(defaults)
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := config.Parse(data)
		if err != nil || len(config.Validate(cfg)) > 0 {
			return
		}
		decideUnder(t, cfg)
	})
}

// decideUnder decides about pods of the configuration's own resources until the
// nodes are full.
func decideUnder(t *testing.T, cfg config.Configuration) {
	t.Helper()
	var gpu string
	if len(cfg.Resources.Names) > 0 {
		gpu = cfg.Resources.Names[0]
	} else {
		gpu = cfg.Resources.Prefixes[0] + "x"
	}
	change := func(c *config.Configuration) { *c = cfg }
	c := clustertest.New(t, change, clustertest.GPUNode("n1", clustertest.List(gpu, "8")), clustertest.GPUNode("n2", clustertest.List(gpu, "4")), clustertest.GPUNode("n3", clustertest.List(gpu, "8"), clustertest.Labelled("a", "b")))
	for i := range 4 {
		pod := clustertest.GPUPod("p", clustertest.List(gpu, "7", "cpu", "1"))
		pod.Spec.SchedulerName = cfg.SchedulerNames[0]
		d := c.DecideOn(pod)
		if i == 0 && cfg.Nodes.ExcludeSelector == nil && d.Target() == "" {
			t.Errorf("no target: %+v", d)
		}
		for _, n := range d.Ranking {
			if n.Weight < 1 || n.Weight > 100 {
				t.Errorf("weight %d of %s", n.Weight, n.Name)
			}
		}
	}
}
