package schedulerconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// profileParts are what the notes about a profile are made from.
type profileParts struct {
	cfg         *schedulerv1.KubeSchedulerConfiguration
	weights     map[string]int64
	foreign     []string
	args        arguments
	constraints int
	profile     *Profile
	gpus        config.Resources
}

// notes say what of a profile is not modelled.
func notes(p profileParts) []string {
	var out []string
	for _, note := range [][]string{
		p.outweighing(), p.spreading(), p.foreignPlugins(), p.extenders(), p.balancing(), p.addedAffinity(), p.podAffinity(), p.ignoredGPUs(),
	} {
		out = append(out, note...)
	}
	return out
}

// outweighing warns of weights against which preferred terms can do little: while
// copies of a pod fill a node, NodeResourcesFit moves it by up to 100 times its weight,
// and NodeAffinity has 100 times its own to hold against that. test/profiles has rows
// on both sides.
func (p *profileParts) outweighing() []string {
	affinity, fit := p.weights[nodeAffinity], p.weights[nodeResourcesFit]
	if affinity == 0 || fit <= affinity || !prefersEmpty(p.profile.Scheduler.ScoringStrategy) {
		return nil
	}
	return []string{fmt.Sprintf("NodeResourcesFit, weight %d, prefers empty nodes more than NodeAffinity, weight %d, can hold against it. Few nodes can be listed in order, or one, and pods that come at once are spread. "+
		"Give NodeAffinity the larger weight; by default it has twice that of NodeResourcesFit.", fit, affinity)}
}

// prefersEmpty tells whether a strategy scores a fuller node lower somewhere.
func prefersEmpty(s config.ScoringStrategy) bool {
	switch s.Type {
	case config.SchedulerMostAllocated:
		return false
	case config.SchedulerRequestedToCapacityRatio:
		return !slices.IsSortedFunc(s.Ratio.Shape, func(a, b config.UtilizationShapePoint) int { return cmp.Compare(a.Score, b.Score) })
	default:
		return true
	}
}

func (p *profileParts) spreading() []string {
	switch {
	case p.profile.Scheduler.DefaultConstraints == config.ConstraintsList:
		return []string{fmt.Sprintf("PodTopologySpread, defaultConstraints: %s. Pods of ReplicaSets, StatefulSets and Services are spread by them, which outweighs packing. "+
			"If each of them is ScheduleAnyway and packing matters more, set defaultConstraints: System; steered pods then lose them.", terminal.Count(p.constraints, "constraint"))}
	case p.args.spread != nil && p.args.spread.DefaultingType == schedulerv1.ListDefaulting && p.constraints == 0:
		return []string{"PodTopologySpread, defaultingType: List without constraints. No administrator's constraint could get lost, so defaultConstraints stays System. " +
			"The constraint without effect that steered pods then get also keeps kube-scheduler's opportunistic batching away from them, which reuses scores."}
	}
	return nil
}

func (p *profileParts) foreignPlugins() []string {
	if len(p.foreign) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: not among kube-scheduler's own plugins. Where one scores nodes, its points are not foreseen and may overrule the ranking, the more the larger its weight is.",
		strings.Join(p.foreign, ", "))}
}

func (p *profileParts) extenders() []string {
	var out []string
	for i := range p.cfg.Extenders {
		e := &p.cfg.Extenders[i]
		if !p.asked(e) {
			continue
		}
		name := fmt.Sprintf("extenders[%d]", i)
		switch {
		case e.PrioritizeVerb != "" && e.Weight > 0:
			out = append(out, fmt.Sprintf("%s scores nodes (weight %d). Its points, up to 100 times the weight, are not foreseen and may overrule the ranking.", name, e.Weight))
		case e.FilterVerb != "":
			out = append(out, name+" filters nodes. A node that it refuses may be ranked first; the pod then goes to the next one.")
		}
		for _, r := range e.ManagedResources {
			if r.IgnoredByScheduler && p.gpus.IsGPU(r.Name) {
				out = append(out, fmt.Sprintf("%s manages %s, which kube-scheduler itself ignores. gpu-binpacker counts it all the same: nodes that are full by its count get no pods from it.", name, r.Name))
			}
		}
	}
	return out
}

// asked tells whether an extender is asked about GPU pods: one that manages resources
// is asked about the pods that request one of them.
func (p *profileParts) asked(e *schedulerv1.Extender) bool {
	return len(e.ManagedResources) == 0 || slices.ContainsFunc(e.ManagedResources, func(r schedulerv1.ExtenderManagedResource) bool {
		return p.gpus.IsGPU(r.Name)
	})
}

func (p *profileParts) balancing() []string {
	resources := p.args.balances()
	if len(resources) == 0 || p.weights[balancedAllocation] == 0 {
		return nil
	}
	return []string{fmt.Sprintf("NodeResourcesBalancedAllocation balances %s. The model knows it for cpu and memory, so its points may differ from the foreseen ones by up to %d, and nodes may be filled in another order.",
		strings.Join(resources, ", "), 50*p.weights[balancedAllocation])}
}

func (p *profileParts) addedAffinity() []string {
	if p.args.affinity == nil || p.args.affinity.AddedAffinity == nil {
		return nil
	}
	added := p.args.affinity.AddedAffinity
	var out []string
	if added.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		out = append(out, "NodeAffinity, addedAffinity.required...: nodes that it excludes may be ranked. The scheduler passes over them, so give them nodes.excludeSelector.")
	}
	if len(added.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
		out = append(out, "NodeAffinity, addedAffinity.preferred...: its weights are added to those of gpu-binpacker's terms, and nodes that it prefers may overrule the ranking.")
	}
	return out
}

func (p *profileParts) podAffinity() []string {
	if p.weights[interPodAffinity] == 0 {
		return []string{"InterPodAffinity does not score, so late steering has no effect: pods that nothing fits at their creation are not drawn together. Set lateSteering.mode: Off to save the terms."}
	}
	if p.args.pods == nil || p.args.pods.HardPodAffinityWeight == nil || *p.args.pods.HardPodAffinityWeight <= 1 {
		return nil
	}
	return []string{fmt.Sprintf("InterPodAffinity, hardPodAffinityWeight: %d. It counts only for GPU pods that the required pod affinity of a running pod selects; those may be drawn away from the ranking.",
		*p.args.pods.HardPodAffinityWeight)}
}

func (p *profileParts) ignoredGPUs() []string {
	if p.args.fit == nil {
		return nil
	}
	var ignored []string
	for _, name := range p.args.fit.IgnoredResources {
		if p.gpus.IsGPU(name) {
			ignored = append(ignored, name)
		}
	}
	for _, group := range p.args.fit.IgnoredResourceGroups {
		if slices.ContainsFunc(p.gpus.Names, func(name string) bool { return strings.HasPrefix(name, group+"/") }) {
			ignored = append(ignored, group+"/*")
		}
	}
	if len(ignored) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("NodeResourcesFit ignores %s when it filters. gpu-binpacker counts them all the same: nodes that are full by its count get no pods from it.", strings.Join(ignored, ", "))}
}
