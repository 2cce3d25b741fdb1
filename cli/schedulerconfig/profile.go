package schedulerconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Profile is one profile of a KubeSchedulerConfiguration in our terms.
type Profile struct {
	// SchedulerName is what pods say in spec.schedulerName to be placed by it.
	SchedulerName string
	// Scheduler describes it. The Kubernetes version is not in the file and left at
	// its default.
	Scheduler config.Scheduler
	// Notes say, one sentence or more each, what is not modelled and what then
	// happens.
	Notes []string
	// unsteerable says why our terms have no effect under the profile; nil if they do.
	unsteerable error
}

// translate describes the profile at the index.
func translate(cfg *schedulerv1.KubeSchedulerConfiguration, index int, gpus config.Resources) (Profile, error) {
	theirs := &cfg.Profiles[index]
	path := field.NewPath("profiles").Index(index)
	p := Profile{SchedulerName: *theirs.SchedulerName, Scheduler: config.Default().Scheduler}
	weights, foreign, err := scoring(path.Child("plugins"), theirs.Plugins)
	if err != nil {
		return p, err
	}
	args, err := argumentsOf(path, theirs)
	if err != nil {
		return p, err
	}
	constraints, err := args.listed()
	if err != nil {
		return p, err
	}
	if constraints > 0 && spreads(theirs.Plugins) {
		p.Scheduler.DefaultConstraints = config.ConstraintsList
	}
	var errStrategy, errPercentage error
	p.Scheduler.ScoringStrategy, errStrategy = args.scoringStrategy()
	p.Scheduler.PercentageOfNodesToScore, errPercentage = percentage(path, cfg.PercentageOfNodesToScore, theirs.PercentageOfNodesToScore)
	if err := errors.Join(errStrategy, errPercentage); err != nil {
		return p, err
	}
	p.Scheduler.PluginWeights = pluginWeights(weights)
	p.unsteerable = checkWeights(path, theirs, weights)
	p.Notes = notes(profileParts{cfg: cfg, weights: weights, foreign: foreign, args: args, constraints: constraints, profile: &p, gpus: gpus})
	return p, nil
}

// pluginWeights are the weights of the plugins that our model knows; a plugin that
// does not score has 0.
func pluginWeights(w map[string]int64) config.PluginWeights {
	return config.PluginWeights{
		NodeAffinity:       w[nodeAffinity],
		TaintToleration:    w[taintToleration],
		PodTopologySpread:  w[podTopologySpread],
		InterPodAffinity:   w[interPodAffinity],
		NodeResourcesFit:   w[nodeResourcesFit],
		BalancedAllocation: w[balancedAllocation],
		ImageLocality:      w[imageLocality],
	}
}

// maxWeight is the largest plugin weight that our configuration takes.
const maxWeight = 100

// checkWeights tells why a profile cannot be steered: without NodeAffinity's score
// preferred terms mean nothing.
func checkWeights(path *field.Path, theirs *schedulerv1.KubeSchedulerProfile, weights map[string]int64) error {
	if weights[nodeAffinity] == 0 {
		return field.Invalid(path.Child("plugins"), *theirs.SchedulerName,
			"NodeAffinity does not score nodes under this profile, so the terms that gpu-binpacker adds have no effect; enable it under plugins.score, for example {name: NodeAffinity, weight: 2}")
	}
	var errs []error
	for _, name := range []string{nodeAffinity, taintToleration, podTopologySpread, interPodAffinity, nodeResourcesFit, balancedAllocation, imageLocality} {
		if weights[name] > maxWeight {
			errs = append(errs, field.Invalid(path.Child("plugins"), *theirs.SchedulerName, fmt.Sprintf(
				"the weight %d of %s is more than the %d that gpu-binpacker's configuration takes; only the ratios of the weights count, so divide all of them by the same number",
				weights[name], name, maxWeight)))
		}
	}
	return errors.Join(errs...)
}

// spreads tells whether PodTopologySpread has any say under a profile, as a filter or
// as a score: if not, default constraints have no effect.
func spreads(p *schedulerv1.Plugins) bool {
	if p == nil {
		return true
	}
	multiPoint := merged([]plugin{{podTopologySpread, 2}}, p.MultiPoint)
	return contains(expanded(multiPoint, p.Score), podTopologySpread) || contains(expanded(multiPoint, p.Filter), podTopologySpread)
}

// differences are the settings of two profiles that differ, by their names in our
// configuration, and "what is not modelled" when that differs.
func (p *Profile) differences(other *Profile) []string {
	var out []string
	for _, s := range []struct {
		name string
		a, b any
	}{
		{"pluginWeights", p.Scheduler.PluginWeights, other.Scheduler.PluginWeights},
		{"scoringStrategy", p.Scheduler.ScoringStrategy, other.Scheduler.ScoringStrategy},
		{"percentageOfNodesToScore", p.Scheduler.PercentageOfNodesToScore, other.Scheduler.PercentageOfNodesToScore},
		{"defaultConstraints", p.Scheduler.DefaultConstraints, other.Scheduler.DefaultConstraints},
		{"what is not modelled", p.Notes, other.Notes},
	} {
		if !reflect.DeepEqual(s.a, s.b) {
			out = append(out, s.name)
		}
	}
	return out
}

// changedWeights are the weights that differ from kube-scheduler's defaults, by their
// names in our configuration.
func changedWeights(w config.PluginWeights) (map[string]int64, error) {
	ours, err := byName(w)
	if err != nil {
		return nil, err
	}
	defaults, err := byName(config.Default().Scheduler.PluginWeights)
	if err != nil {
		return nil, err
	}
	for name, weight := range defaults {
		if ours[name] == weight {
			delete(ours, name)
		}
	}
	return ours, nil
}

func byName(w config.PluginWeights) (map[string]int64, error) {
	encoded, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encoding the weights: %w", err)
	}
	var named map[string]int64
	if err := json.Unmarshal(encoded, &named); err != nil {
		return nil, fmt.Errorf("decoding the weights: %w", err)
	}
	return named, nil
}
