package schedulerconfig

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// arguments are those of the plugins that matter to our model. A nil pointer means
// kube-scheduler's defaults.
type arguments struct {
	fit      *schedulerv1.NodeResourcesFitArgs
	balanced *schedulerv1.NodeResourcesBalancedAllocationArgs
	spread   *schedulerv1.PodTopologySpreadArgs
	affinity *schedulerv1.NodeAffinityArgs
	pods     *schedulerv1.InterPodAffinityArgs
	// fitPath and spreadPath are where the arguments are in the file.
	fitPath, spreadPath *field.Path
}

// argumentsOf sorts the arguments of a profile by their type.
func argumentsOf(path *field.Path, p *schedulerv1.KubeSchedulerProfile) (a arguments, err error) {
	seen := map[string]bool{}
	for i := range p.PluginConfig {
		c := &p.PluginConfig[i]
		at := path.Child("pluginConfig").Index(i)
		if seen[c.Name] {
			return a, field.Duplicate(at.Child("name"), c.Name)
		}
		seen[c.Name] = true
		switch args := c.Args.Object.(type) {
		case *schedulerv1.NodeResourcesFitArgs:
			a.fit, a.fitPath = args, at.Child("args")
		case *schedulerv1.NodeResourcesBalancedAllocationArgs:
			a.balanced = args
		case *schedulerv1.PodTopologySpreadArgs:
			a.spread, a.spreadPath = args, at.Child("args")
		case *schedulerv1.NodeAffinityArgs:
			a.affinity = args
		case *schedulerv1.InterPodAffinityArgs:
			a.pods = args
		}
	}
	return a, nil
}

// scoringStrategy is our description of that of NodeResourcesFit, with the defaults
// that kube-scheduler fills in.
func (a *arguments) scoringStrategy() (config.ScoringStrategy, error) {
	ours := config.Default().Scheduler.ScoringStrategy
	if a.fit == nil || a.fit.ScoringStrategy == nil {
		return ours, nil
	}
	theirs := a.fit.ScoringStrategy
	ours.Type = config.ScoringStrategyType(theirs.Type)
	if len(theirs.Resources) > 0 {
		ours.Resources = nil
	}
	for _, r := range theirs.Resources {
		weight := r.Weight
		if weight == 0 {
			weight = 1
		}
		ours.Resources = append(ours.Resources, config.ResourceWeight{Name: r.Name, Weight: weight})
	}
	if ratio := theirs.RequestedToCapacityRatio; ratio != nil {
		for _, point := range ratio.Shape {
			ours.Ratio.Shape = append(ours.Ratio.Shape,
				config.UtilizationShapePoint{Utilization: int64(point.Utilization), Score: int64(point.Score)})
		}
	}
	return ours, config.ValidateScoringStrategy(a.fitPath.Child("scoringStrategy"), ours).ToAggregate()
}

// listed are the constraints that an administrator has set for all pods. System
// spreading has none.
func (a *arguments) listed() (constraints int, err error) {
	if a.spread == nil {
		return 0, nil
	}
	constraints = len(a.spread.DefaultConstraints)
	switch a.spread.DefaultingType {
	case schedulerv1.ListDefaulting:
		return constraints, nil
	case schedulerv1.SystemDefaulting, "":
		if constraints > 0 {
			return 0, field.Invalid(a.spreadPath.Child("defaultingType"), string(a.spread.DefaultingType),
				"kube-scheduler does not start with defaultConstraints unless this is List")
		}
		return 0, nil
	}
	return 0, field.NotSupported(a.spreadPath.Child("defaultingType"), a.spread.DefaultingType,
		[]schedulerv1.PodTopologySpreadConstraintsDefaulting{schedulerv1.SystemDefaulting, schedulerv1.ListDefaulting})
}

// balances are the resources of NodeResourcesBalancedAllocation, none when they are
// the default ones.
func (a *arguments) balances() []string {
	if a.balanced == nil || len(a.balanced.Resources) == 0 {
		return nil
	}
	names := map[string]bool{}
	var all []string
	for _, r := range a.balanced.Resources {
		names[r.Name] = true
		all = append(all, r.Name)
	}
	if len(names) == 2 && names["cpu"] && names["memory"] {
		return nil
	}
	return all
}

// percentage is percentageOfNodesToScore: the profile's, else that of all profiles.
func percentage(path *field.Path, ofAll, ofProfile *int32) (int64, error) {
	const name = "percentageOfNodesToScore"
	value, at := ofAll, field.NewPath(name)
	if ofProfile != nil {
		value, at = ofProfile, path.Child(name)
	}
	if value == nil {
		return 0, nil
	}
	if *value < 0 || *value > 100 {
		return 0, field.Invalid(at, *value, "must be from 0 to 100")
	}
	return int64(*value), nil
}
