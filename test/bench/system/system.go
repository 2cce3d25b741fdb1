package system

import (
	"fmt"
	"strconv"
	"strings"
)

// Names of the systems in reports.
const (
	Default       = "default"
	MostAllocated = "most-allocated"
	Plugin        = "plugin"
	Ours          = "ours"
	// Bound is no system but the computed lower bound.
	Bound = "bound"
)

// System is one way to place pods.
type System struct {
	// Name is one of the constants.
	Name string
	// Replicas is how many processes of the webhook run, 0 for none.
	Replicas int
}

// All returns the systems in the order of reports.
func All() []System {
	return []System{{Name: Default}, {Name: MostAllocated}, {Name: Plugin}, {Ours, 1}, {Ours, 2}}
}

// String returns the name on the command line: ours-2 for two replicas.
func (s System) String() string {
	if s.Replicas == 0 {
		return s.Name
	}
	return s.Name + "-" + strconv.Itoa(s.Replicas)
}

// Parse reads a list such as "default,ours-2"; "ours" means one and two replicas,
// and nothing means all systems.
func Parse(list string) ([]System, error) {
	if list == "" {
		return All(), nil
	}
	var systems []System
	for name := range strings.SplitSeq(list, ",") {
		found := false
		for _, s := range All() {
			if name == s.String() || name == s.Name {
				systems = append(systems, s)
				found = true
			}
		}
		if !found {
			return nil, fmt.Errorf("no system %q, only %v", name, All())
		}
	}
	return systems, nil
}

// schedulerName is the spec.schedulerName of the system's pods.
func (s System) schedulerName() string {
	switch s.Name {
	case MostAllocated:
		return mostAllocatedProfile
	case Plugin:
		return pluginProfile
	default:
		return defaultProfile
	}
}
