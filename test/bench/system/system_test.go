package system

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		list string
		want []System
	}{
		"all":          {"", All()},
		"ours is both": {"ours", []System{{Ours, 1}, {Ours, 2}}},
		"two":          {"plugin,ours-2", []System{{Plugin, 0}, {Ours, 2}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tc.list)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := Parse("other"); err == nil {
		t.Error("an unknown system is accepted")
	}
}

// TestProfiles checks that the configurations are YAML and have the profiles that
// pods ask for.
func TestProfiles(t *testing.T) {
	profiles := map[string]bool{}
	for _, text := range []string{stockProfiles, pluginProfileConfig} {
		var config struct {
			Profiles []struct {
				SchedulerName string `json:"schedulerName"`
			} `json:"profiles"`
		}
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		for _, p := range config.Profiles {
			profiles[p.SchedulerName] = true
		}
	}
	for _, s := range All() {
		if !profiles[s.schedulerName()] {
			t.Errorf("no profile %q for %s", s.schedulerName(), s)
		}
	}
}

func TestCountsSince(t *testing.T) {
	before, after := Counts{Served: []int{1, 2}, FailedOpen: 1}, Counts{Served: []int{4, 9}, Denied: 1, FailedOpen: 3}
	want := Counts{Served: []int{3, 7}, Denied: 1, FailedOpen: 2}
	if diff := cmp.Diff(want, after.Since(before)); diff != "" {
		t.Error(diff)
	}
	if after.Served[0] != 4 {
		t.Error("the later counts were changed")
	}
}

// TestPatientConfiguration checks that the shipped file still has the line that is
// replaced.
func TestPatientConfiguration(t *testing.T) {
	if _, err := patientConfiguration(); err != nil {
		t.Error(err)
	}
}
