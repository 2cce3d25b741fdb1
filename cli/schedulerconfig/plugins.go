package schedulerconfig

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
)

// Names of kube-scheduler's plugins that our model knows.
const (
	nodeAffinity       = "NodeAffinity"
	taintToleration    = "TaintToleration"
	podTopologySpread  = "PodTopologySpread"
	interPodAffinity   = "InterPodAffinity"
	nodeResourcesFit   = "NodeResourcesFit"
	balancedAllocation = "NodeResourcesBalancedAllocation"
	imageLocality      = "ImageLocality"
)

// inTree are the plugins of kube-scheduler 1.34 to 1.37, name -> whether it scores
// nodes. Source: k8s.io/kubernetes pkg/scheduler/framework/plugins.
var inTree = map[string]bool{
	nodeAffinity: true, taintToleration: true, podTopologySpread: true, interPodAffinity: true,
	nodeResourcesFit: true, balancedAllocation: true, imageLocality: true,
	// These two score only for pods with claims of volumes or devices.
	"VolumeBinding": true, "DynamicResources": true,
	"DefaultBinder": false, "DefaultPreemption": false, "DeferredPodScheduling": false, "GangScheduling": false,
	"NodeDeclaredFeatures": false, "NodeName": false, "NodePorts": false, "NodeUnschedulable": false,
	"NodeVolumeLimits": false, "PodGroupPodsCount": false, "PrioritySort": false, "SchedulingGates": false,
	"TopologyPlacementGenerator": false, "VolumeRestrictions": false, "VolumeZone": false,
}

// plugin is an enabled plugin; weight 0 means that none is stated.
type plugin struct {
	name   string
	weight int64
}

// defaultPlugins are those of kube-scheduler's default profile that score, all under
// multiPoint. Source: pkg/scheduler/apis/config/v1/default_plugins.go.
func defaultPlugins() []plugin {
	return []plugin{
		{taintToleration, 3}, {nodeAffinity, 2}, {nodeResourcesFit, 1}, {"VolumeBinding", 0}, {podTopologySpread, 2},
		{interPodAffinity, 2}, {"DynamicResources", 2}, {balancedAllocation, 1}, {imageLocality, 1},
	}
}

// scoring returns the weights of the plugins that score under a profile, and the
// names among them that are none of kube-scheduler's own, sorted. Those may score or
// not: their code decides.
func scoring(path *field.Path, p *schedulerv1.Plugins) (weights map[string]int64, foreign []string, err error) {
	if p == nil {
		p = &schedulerv1.Plugins{}
	}
	if err := checkSets(path, p); err != nil {
		return nil, nil, err
	}
	weights = map[string]int64{}
	for _, e := range expanded(merged(defaultPlugins(), p.MultiPoint), p.Score) {
		scores, known := inTree[e.name]
		if known && !scores {
			continue // multiPoint names it for its other extension points
		}
		if !known {
			foreign = append(foreign, e.name)
		}
		// kube-scheduler knows no weight 0: whoever does not want a plugin disables it.
		weights[e.name] = max(e.weight, 1)
	}
	slices.Sort(foreign)
	return weights, foreign, nil
}

// merged is what kube-scheduler makes of its default plugins and those of a profile
// under multiPoint: enabled ones replace the default of the same name, disabled ones
// lose it, and a plugin that is both stays enabled.
func merged(defaults []plugin, set schedulerv1.PluginSet) []plugin {
	enabled := enabledOf(set)
	var out []plugin
	if !disables(set, "*") {
		for _, d := range defaults {
			if !disables(set, d.name) && !contains(enabled, d.name) {
				out = append(out, d)
			}
		}
	}
	return append(out, enabled...)
}

// expanded adds to the plugins enabled for one extension point those of multiPoint,
// unless they are disabled there or enabled with another weight.
func expanded(multiPoint []plugin, set schedulerv1.PluginSet) []plugin {
	out := enabledOf(set)
	if disables(set, "*") {
		return out
	}
	for _, p := range multiPoint {
		if !disables(set, p.name) && !contains(out, p.name) {
			out = append(out, p)
		}
	}
	return out
}

// checkSets refuses plugins with which kube-scheduler does not start.
func checkSets(path *field.Path, p *schedulerv1.Plugins) error {
	var errs field.ErrorList
	for _, point := range []struct {
		name string
		set  schedulerv1.PluginSet
	}{{"multiPoint", p.MultiPoint}, {"score", p.Score}} {
		seen := map[string]bool{}
		for i, e := range point.set.Enabled {
			at := path.Child(point.name, "enabled").Index(i)
			if seen[e.Name] {
				errs = append(errs, field.Duplicate(at.Child("name"), e.Name))
			}
			seen[e.Name] = true
			if scores, known := inTree[e.Name]; point.name == "score" && known && !scores {
				errs = append(errs, field.Invalid(at.Child("name"), e.Name, "does not score nodes, and kube-scheduler does not start with it here; remove it"))
			}
			if e.Weight != nil && *e.Weight < 0 {
				errs = append(errs, field.Invalid(at.Child("weight"), *e.Weight, "must be at least 1"))
			}
		}
	}
	return errs.ToAggregate()
}

func enabledOf(set schedulerv1.PluginSet) []plugin {
	var out []plugin
	for _, e := range set.Enabled {
		p := plugin{name: e.Name}
		if e.Weight != nil {
			p.weight = int64(*e.Weight)
		}
		out = append(out, p)
	}
	return out
}

func disables(set schedulerv1.PluginSet, name string) bool {
	return slices.ContainsFunc(set.Disabled, func(p schedulerv1.Plugin) bool { return p.Name == name })
}

func contains(plugins []plugin, name string) bool {
	return slices.ContainsFunc(plugins, func(p plugin) bool { return p.name == name })
}
