package agreement

import (
	"fmt"
	"strings"
	"testing"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"sigs.k8s.io/yaml"

	translation "github.com/gpu-binpacker/gpu-binpacker/cli/schedulerconfig"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/agreement/cluster"
)

// ourWeights are our names of the weights of kube-scheduler's score plugins.
func ourWeights(w config.PluginWeights) map[string]int64 {
	return map[string]int64{
		names.NodeAffinity: w.NodeAffinity, names.TaintToleration: w.TaintToleration, names.PodTopologySpread: w.PodTopologySpread,
		names.InterPodAffinity: w.InterPodAffinity, names.NodeResourcesFit: w.NodeResourcesFit,
		names.NodeResourcesBalancedAllocation: w.BalancedAllocation, names.ImageLocality: w.ImageLocality,
	}
}

// Whatever plugins a file enables and disables, and wherever: what check
// --scheduler-config makes of it is what kube-scheduler runs with.
func TestSchedulerConfigAgrees(t *testing.T) {
	disabled, several := 0, map[string]bool{}
	for seed := range uint64(300) {
		g := cluster.NewGenerator(seed)
		text := schedulerFile(g)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			profile := loadProfile(t, text)
			r := newRealScheduler(t, func(p *schedulerconfig.KubeSchedulerProfile) { *p = profile })
			ours, err := translation.Translate([]byte(text), config.Default().Resources)
			if r.weights[names.NodeAffinity] == 0 {
				if err == nil || !strings.Contains(err.Error(), "NodeAffinity does not score") {
					t.Errorf("without NodeAffinity's score: error %v", err)
				}
				disabled++
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for name, got := range ourWeights(ours.Scheduler.PluginWeights) {
				if want := r.weights[name]; got != want {
					t.Errorf("%s: weight %d, kube-scheduler's is %d", name, got, want)
				}
				several[fmt.Sprint(name, got)] = true
			}
			if r.weights[names.NodeResourcesFit] > 0 {
				compareStrategies(t, ours.Scheduler.ScoringStrategy, profile)
			}
		})
		if t.Failed() {
			t.Fatalf("the file:\n%s", text)
		}
	}
	if disabled < 10 || len(several) < 50 {
		t.Errorf("%d files without NodeAffinity, %d different weights: the files are too much alike", disabled, len(several))
	}
}

// loadProfile reads a file as kube-scheduler does, and fills in its defaults.
func loadProfile(t *testing.T, text string) schedulerconfig.KubeSchedulerProfile {
	t.Helper()
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		t.Fatalf("it is a %T", object)
	}
	return cfg.Profiles[0]
}

// compareStrategies compares by the names in the file, which both have.
func compareStrategies(t *testing.T, ours config.ScoringStrategy, profile schedulerconfig.KubeSchedulerProfile) {
	t.Helper()
	for i := range profile.PluginConfig {
		args, ok := profile.PluginConfig[i].Args.(*schedulerconfig.NodeResourcesFitArgs)
		if !ok {
			continue
		}
		theirs := config.ScoringStrategy{Type: config.ScoringStrategyType(args.ScoringStrategy.Type)}
		for _, r := range args.ScoringStrategy.Resources {
			theirs.Resources = append(theirs.Resources, config.ResourceWeight{Name: r.Name, Weight: r.Weight})
		}
		if ratio := args.ScoringStrategy.RequestedToCapacityRatio; ratio != nil {
			for _, p := range ratio.Shape {
				theirs.Ratio.Shape = append(theirs.Ratio.Shape, config.UtilizationShapePoint{Utilization: int64(p.Utilization), Score: int64(p.Score)})
			}
		}
		if got, want := fmt.Sprint(ours), fmt.Sprint(theirs); got != want {
			t.Errorf("strategy %s, kube-scheduler's is %s", got, want)
		}
		return
	}
	t.Error("kube-scheduler has no arguments for NodeResourcesFit")
}

// schedulerFile is a KubeSchedulerConfiguration with which kube-scheduler starts.
func schedulerFile(g *cluster.Generator) string {
	scoring := []string{
		names.NodeAffinity, names.TaintToleration, names.PodTopologySpread, names.InterPodAffinity,
		names.NodeResourcesFit, names.NodeResourcesBalancedAllocation, names.ImageLocality, names.VolumeBinding,
	}
	score := pluginSet(g, scoring)
	multiPoint := pluginSet(g, append([]string{names.NodePorts, names.NodeUnschedulable}, scoring...))
	// Without these two it does not start.
	multiPoint["enabled"] = append(multiPoint["enabled"], map[string]any{"name": names.PrioritySort}, map[string]any{"name": names.DefaultBinder})
	profile := map[string]any{"schedulerName": "default-scheduler", "plugins": map[string]any{"multiPoint": multiPoint, "score": score}}
	if g.Chance(50) {
		profile["pluginConfig"] = []any{map[string]any{"name": names.NodeResourcesFit, "args": map[string]any{"scoringStrategy": strategy(g)}}}
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": []any{profile},
	})
	if err != nil {
		panic(err) // these are plain values
	}
	return string(text)
}

// pluginSet enables and disables some plugins, with and without a weight, the same
// ones perhaps.
func pluginSet(g *cluster.Generator, among []string) map[string][]any {
	set := map[string][]any{}
	for _, name := range cluster.Some(g, cluster.One(g, 0, 20, 50), among...) {
		plugin := map[string]any{"name": name}
		if g.Chance(70) {
			plugin["weight"] = g.IntN(12)
		}
		set["enabled"] = append(set["enabled"], plugin)
	}
	for _, name := range cluster.Some(g, cluster.One(g, 0, 0, 20, 50), among...) {
		set["disabled"] = append(set["disabled"], map[string]any{"name": name})
	}
	if g.Chance(10) {
		set["disabled"] = []any{map[string]any{"name": "*"}}
	}
	return set
}

// strategy is a scoring strategy, with parts left to the defaults.
func strategy(g *cluster.Generator) map[string]any {
	kind := cluster.One(g, schedulerconfig.LeastAllocated, schedulerconfig.MostAllocated, schedulerconfig.RequestedToCapacityRatio)
	strategy := map[string]any{"type": kind}
	var resources []any
	for _, name := range cluster.Some(g, 40, "cpu", "memory", cluster.NVIDIA) {
		resource := map[string]any{"name": name}
		if g.Chance(70) {
			resource["weight"] = g.IntN(101)
		}
		resources = append(resources, resource)
	}
	if resources != nil {
		strategy["resources"] = resources
	}
	if kind == schedulerconfig.RequestedToCapacityRatio {
		var shape []any
		for _, p := range randomShape(g) {
			shape = append(shape, map[string]any{"utilization": p.utilization, "score": p.score})
		}
		strategy["requestedToCapacityRatio"] = map[string]any{"shape": shape}
	}
	return strategy
}
