package schedulerconfig

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// defaultScheduler is the name of the profile of pods that name none.
const defaultScheduler = corev1.DefaultSchedulerName

// Translation is what a KubeSchedulerConfiguration means for our configuration,
// which describes one profile.
type Translation struct {
	// Where is the field of the file that holds it; empty when it is a document of
	// its own.
	Where string
	// Profile is the described one: default-scheduler's if there is one, else the
	// first.
	Profile
	// SchedulerNames are the names of the described profile and of those that are
	// like it.
	SchedulerNames []string
	// Others are the remaining profiles, each with the settings that differ.
	Others []Other
}

// Other is a profile that the described one does not stand for.
type Other struct {
	SchedulerName string
	// Differences are settings by their names in our configuration.
	Differences []string
}

// Translate reads a file that holds a KubeSchedulerConfiguration. gpus are the
// resources that count as GPUs. The error names the field and what to do; it is
// also returned when our terms would have no effect.
func Translate(data []byte, gpus config.Resources) (Translation, error) {
	f, err := find(data)
	if err != nil {
		return Translation{}, err
	}
	t, err := translated(f, gpus)
	return t, at(f.where, err)
}

func translated(f found, gpus config.Resources) (Translation, error) {
	cfg, err := decode(f.raw)
	if err != nil {
		return Translation{}, err
	}
	if err := checkProfiles(cfg); err != nil {
		return Translation{}, err
	}
	profiles := make([]Profile, len(cfg.Profiles))
	for i := range profiles {
		if profiles[i], err = translate(cfg, i, gpus); err != nil {
			return Translation{}, err
		}
	}
	described := max(slices.IndexFunc(profiles, func(p Profile) bool { return p.SchedulerName == defaultScheduler }), 0)
	t := Translation{Where: f.where, Profile: profiles[described], SchedulerNames: []string{profiles[described].SchedulerName}}
	if t.unsteerable != nil {
		return Translation{}, t.unsteerable
	}
	for i := range profiles {
		if i == described {
			continue
		}
		if differences := t.differences(&profiles[i]); len(differences) > 0 {
			t.Others = append(t.Others, Other{SchedulerName: profiles[i].SchedulerName, Differences: differences})
		} else {
			t.SchedulerNames = append(t.SchedulerNames, profiles[i].SchedulerName)
		}
	}
	return t, nil
}

// section is the part of our configuration that differs from its defaults.
type section struct {
	SchedulerNames []string          `json:"schedulerNames,omitempty"`
	Scheduler      *schedulerSection `json:"scheduler,omitempty"`
}

type schedulerSection struct {
	PluginWeights            map[string]int64          `json:"pluginWeights,omitempty"`
	ScoringStrategy          *config.ScoringStrategy   `json:"scoringStrategy,omitempty"`
	PercentageOfNodesToScore int64                     `json:"percentageOfNodesToScore,omitempty"`
	DefaultConstraints       config.DefaultConstraints `json:"defaultConstraints,omitempty"`
}

// YAML is the part of our configuration that differs from its defaults, empty when
// none does.
func (t *Translation) YAML() ([]byte, error) {
	defaults := config.Default()
	var s section
	if !slices.Equal(t.SchedulerNames, defaults.SchedulerNames) {
		s.SchedulerNames = t.SchedulerNames
	}
	weights, err := changedWeights(t.Scheduler.PluginWeights)
	if err != nil {
		return nil, err
	}
	changed := schedulerSection{PluginWeights: weights, PercentageOfNodesToScore: t.Scheduler.PercentageOfNodesToScore}
	strategy := t.Scheduler.ScoringStrategy
	isDefault := strategy.Type == defaults.Scheduler.ScoringStrategy.Type && slices.Equal(strategy.Resources, defaults.Scheduler.ScoringStrategy.Resources)
	if !isDefault {
		changed.ScoringStrategy = &strategy
	}
	if t.Scheduler.DefaultConstraints != defaults.Scheduler.DefaultConstraints {
		changed.DefaultConstraints = t.Scheduler.DefaultConstraints
	}
	if len(changed.PluginWeights) > 0 || changed.ScoringStrategy != nil || changed.PercentageOfNodesToScore != 0 || changed.DefaultConstraints != "" {
		s.Scheduler = &changed
	}
	if s.Scheduler == nil && s.SchedulerNames == nil {
		return nil, nil
	}
	text, err := yaml.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the section: %w", err)
	}
	return text, nil
}
