//go:build profiles

package profiles

import (
	"cmp"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// row is a profile and how many nodes the pods of a ReplicaSet, created at once, are
// on in the end.
type row struct {
	// name is the row's; file is in testdata, by default that of the name.
	name, file string
	// scenario is what is played; its Ideal is the fewest nodes.
	scenario scenario.Scenario
	// most is how many nodes are used at most; least, if not 0, how many at least:
	// where packing does not come out, that is asserted too.
	most, least int
}

// gpus gives the pods of a scenario the name of a second profile.
func gpus(s scenario.Scenario) scenario.Scenario {
	s.SchedulerName = "gpus"
	return s
}

func rows() []row {
	burst, large := scenario.Burst(), scenario.BurstOn(200, 160)
	return []row{
		{name: "default", scenario: burst, most: 8},
		{name: "most-allocated", scenario: burst, most: 8},
		{name: "ratio", scenario: burst, most: 8},
		{name: "ratio-peak", scenario: burst, most: 8},
		{name: "list-empty", scenario: burst, most: 8},
		// The constraints are an administrator's and stay: they spread the pods.
		{name: "list-constraints", scenario: burst, least: 14, most: 16},
		{name: "weights", scenario: burst, most: 8},
		{name: "weights-even", scenario: burst, most: 8},
		// One node only can be listed: copies on it cost it more points than
		// NodeAffinity gives.
		{name: "weights-spreading", scenario: burst, least: 14, most: 16},
		{name: "weights-packing", scenario: burst, most: 8},
		{name: "disabled", scenario: burst, most: 8},
		// Of 200 nodes the scheduler examines 100, by default and with 20 percent, so
		// that the listed ones may not be among them.
		{name: "default-200", file: "default", scenario: large, most: 30},
		{name: "percentage-20", scenario: large, most: 30},
		{name: "percentage-100", scenario: large, most: 20},
		{name: "alike", scenario: gpus(burst), most: 8},
		{name: "only-gpus", scenario: gpus(burst), most: 8},
	}
}

// Under each profile the pods are packed with what check --scheduler-config makes of
// its file, or it is known why not.
func TestProfiles(t *testing.T) {
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			file := read(t, cmp.Or(r.file, r.name))
			schedulerWith(t, file)
			c := installed(t, described(t, file))
			without := play(t, c, r.scenario, r.name, false)
			with := play(t, c, r.scenario, r.name, true)
			t.Logf("| %s | %d of %d | %d without | ideal %d |", r.name, with, r.scenario.Nodes, without, r.scenario.Ideal)
			if with > r.most || with < max(r.least, r.scenario.Ideal) {
				t.Errorf("%d nodes used, want %d to %d", with, max(r.least, r.scenario.Ideal), r.most)
			}
		})
	}
}
