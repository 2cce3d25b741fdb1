package binary

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

// total stands for the sum of all plugins of the model, with their weights.
const total = "total"

// plugin is a plugin that the model predicts.
type plugin struct {
	// weight is its weight in our configuration.
	weight func(*config.PluginWeights) int64
	// points are the model's for a node, 0 to 100.
	points func(*scheduler.Points) int64
}

var plugins = map[string]plugin{
	names.NodeAffinity: {
		weight: func(w *config.PluginWeights) int64 { return w.NodeAffinity },
		points: func(p *scheduler.Points) int64 { return p.NodeAffinity },
	},
	names.TaintToleration: {
		weight: func(w *config.PluginWeights) int64 { return w.TaintToleration },
		points: func(p *scheduler.Points) int64 { return p.TaintToleration },
	},
	names.NodeResourcesFit: {
		weight: func(w *config.PluginWeights) int64 { return w.NodeResourcesFit },
		points: func(p *scheduler.Points) int64 { return p.NodeResourcesFit },
	},
	names.NodeResourcesBalancedAllocation: {
		weight: func(w *config.PluginWeights) int64 { return w.BalancedAllocation },
		points: func(p *scheduler.Points) int64 { return p.BalancedAllocation },
	},
	names.ImageLocality: {
		weight: func(w *config.PluginWeights) int64 { return w.ImageLocality },
		points: func(p *scheduler.Points) int64 { return p.ImageLocality },
	},
}

// comparison is one pod on all nodes.
type comparison struct {
	t       *testing.T
	seed    uint64
	pod     *corev1.Pod
	weights *config.PluginWeights
	counts  map[string]*count
	// failed tells whether this pod's scores differ.
	failed bool
}

// compare compares what the scheduler logged about a pod, and where the pod went,
// with the prediction. node is "" for a pod that fits nowhere.
func (c *comparison) compare(predicted []scheduler.Points, actual map[string]*nodeScores, node string) {
	c.t.Helper()
	defer c.describe()
	var ours, theirs []string
	for i := range predicted {
		ours = append(ours, predicted[i].Name)
	}
	theirs = slices.Sorted(maps.Keys(actual))
	if len(theirs) == 0 && node != "" {
		// A pod with one feasible node is not scored.
		theirs = []string{node}
	}
	if !slices.Equal(ours, theirs) {
		c.errorf("the scheduler finds the nodes %v feasible, the model %v", theirs, ours)
		return
	}
	if len(actual) == 0 {
		return
	}
	for name := range plugins {
		c.comparePlugin(name, predicted, actual)
	}
	c.compareTotals(predicted, actual)
}

// comparePlugin compares one plugin. One that skips the pod logs nothing, and gives
// every node the same.
func (c *comparison) comparePlugin(name string, predicted []scheduler.Points, actual map[string]*nodeScores) {
	c.t.Helper()
	weight := plugins[name].weight(c.weights)
	values := map[int64]bool{}
	for i := range predicted {
		points := plugins[name].points(&predicted[i])
		weighted, scored := actual[predicted[i].Name].weighted[name]
		if scored {
			c.count(name, predicted[i].Name, weighted, weight*points)
		} else if points != 0 {
			c.errorf("%s skips the pod, but the model gives node %s %d points", name, predicted[i].Name, points)
		}
		values[points] = true
	}
	if len(values) > 1 {
		c.counts[name].contrasts++
	}
}

// compareTotals compares the sums without spreading and inter-pod affinity, which
// the model leaves out because they are the same on all nodes for these pods.
func (c *comparison) compareTotals(predicted []scheduler.Points, actual map[string]*nodeScores) {
	c.t.Helper()
	var others []int64
	values := map[int64]bool{}
	for i := range predicted {
		p, scores := &predicted[i], actual[predicted[i].Name]
		var known, other int64
		for name, weighted := range scores.weighted {
			if _, ok := plugins[name]; ok {
				known += weighted
			} else {
				other += weighted
			}
		}
		if known+other != scores.total {
			c.errorf("node %s: the log has %d points in all, but %d by plugins", p.Name, scores.total, known+other)
		}
		others = append(others, other)
		c.count(total, p.Name, scores.total-other, p.Total)
		values[p.Total] = true
	}
	if len(slices.Compact(others)) > 1 {
		c.errorf("plugins that the model leaves out tell the nodes apart: %v", actual)
	}
	if len(values) > 1 {
		c.counts[total].contrasts++
	}
}

// count counts one comparison.
func (c *comparison) count(name, node string, actual, predicted int64) {
	c.t.Helper()
	n := c.counts[name]
	n.Compared++
	n.scores[actual] = true
	if actual != predicted {
		n.Differing++
		c.errorf("node %s, %s: the scheduler gives %d points with the plugin's weight, the model %d", node, name, actual, predicted)
	}
}

func (c *comparison) errorf(format string, args ...any) {
	c.t.Helper()
	c.failed = true
	c.t.Errorf("seed %d, pod %s: %s", c.seed, c.pod.Name, fmt.Sprintf(format, args...))
}

// describe logs the pod if it failed.
func (c *comparison) describe() {
	if !c.failed {
		return
	}
	text, err := yaml.Marshal(c.pod.Spec)
	if err != nil {
		c.t.Error(err)
	}
	c.t.Logf("pod %s\n%s", c.pod.Name, text)
}
