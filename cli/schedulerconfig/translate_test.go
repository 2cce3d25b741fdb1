package schedulerconfig

import (
	"strings"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// header is how a configuration file of kube-scheduler begins.
const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// inProfile is a file with a part of its one profile.
func inProfile(text string) string { return header + "profiles:\n- " + text }

// An error names the field, and what is wrong with it or what to do.
func TestTranslateErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"empty":               {"# nothing\n", []string{"it is empty", "--config"}},
		"no YAML":             {"a: [", []string{"no valid YAML"}},
		"repeated field":      {header + "parallelism: 1\nparallelism: 2\n", []string{"no valid YAML", "parallelism"}},
		"no object":           {"text", []string{"apiVersion and kind"}},
		"without a kind":      {"profiles: []", []string{"apiVersion and kind: are missing", "kubescheduler.config.k8s.io/v1"}},
		"kubeadm's own file":  {"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration", []string{"only ClusterConfiguration", "--config"}},
		"two of them":         {header + "---\n" + header, []string{"2 objects of kind KubeSchedulerConfiguration", "leave the one"}},
		"an older version":    {"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration", []string{"apiVersion: kubescheduler.config.k8s.io/v1beta3", "write kubescheduler.config.k8s.io/v1"}},
		"a later version":     {"apiVersion: kubescheduler.config.k8s.io/v2\nkind: KubeSchedulerConfiguration", []string{"apiVersion: kubescheduler.config.k8s.io/v2", "write kubescheduler.config.k8s.io/v1"}},
		"unknown field":       {header + "profile: []", []string{`unknown field "profile"`, "mend the spelling"}},
		"unknown argument":    {inProfile("pluginConfig: [{name: NodeResourcesFit, args: {scoring: {}}}]"), []string{".profiles[0].pluginConfig[0]", `unknown field "scoring"`, "mend the spelling"}},
		"argument's type":     {inProfile("pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: [x]}}}]"), []string{".profiles[0].pluginConfig[0]"}},
		"arguments of others": {inProfile("pluginConfig: [{name: NodeResourcesFit, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: NodeAffinityArgs}}]"), []string{".profiles[0].pluginConfig[0]", "NodeAffinityArgs"}},
		"arguments twice":     {inProfile("pluginConfig: [{name: A}, {name: A}]"), []string{"profiles[0].pluginConfig[1].name", "Duplicate"}},
		"strategy": {inProfile("pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Most}}}]"),
			[]string{"profiles[0].pluginConfig[0].args.scoringStrategy.type", "RequestedToCapacityRatio"}},
		"no shape": {inProfile("pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio}}}]"),
			[]string{"profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape", "at least one point"}},
		"constraints with System": {inProfile("pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}}]"),
			[]string{"profiles[0].pluginConfig[0].args.defaultingType", "List"}},
		"defaulting type":     {inProfile("pluginConfig: [{name: PodTopologySpread, args: {defaultingType: None}}]"), []string{"profiles[0].pluginConfig[0].args.defaultingType", `"System"`}},
		"percentage":          {header + "percentageOfNodesToScore: 101", []string{"percentageOfNodesToScore: Invalid", "0 to 100"}},
		"profile's":           {inProfile("percentageOfNodesToScore: -1"), []string{"profiles[0].percentageOfNodesToScore", "0 to 100"}},
		"no name":             {header + "profiles: [{schedulerName: a}, {}]", []string{"profiles[1].schedulerName: Required"}},
		"name twice":          {header + "profiles: [{schedulerName: a}, {schedulerName: a}]", []string{"profiles[1].schedulerName: Duplicate"}},
		"not a name":          {inProfile("schedulerName: Not one"), []string{"profiles[0].schedulerName", "choose a name"}},
		"enabled twice":       {inProfile("plugins: {score: {enabled: [{name: A}, {name: A}]}}"), []string{"profiles[0].plugins.score.enabled[1].name: Duplicate"}},
		"does not score":      {inProfile("plugins: {score: {enabled: [{name: NodePorts}]}}"), []string{"profiles[0].plugins.score.enabled[0].name", "remove it"}},
		"negative weight":     {inProfile("plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: -2}]}}"), []string{"profiles[0].plugins.multiPoint.enabled[0].weight"}},
		"weight too large":    {inProfile("plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 200}]}}"), []string{"profiles[0].plugins", "weight 200 of ImageLocality", "divide all of them"}},
		"nothing to steer by": {inProfile("plugins: {score: {disabled: [{name: NodeAffinity}]}}"), []string{"profiles[0].plugins", "NodeAffinity does not score", "have no effect", "enable it"}},
		"in a ConfigMap":      {"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    kind: KubeSchedulerConfiguration\n    apiVersion: kubescheduler.config.k8s.io/v1\n    x: 1", []string{`data["a"]: `, `unknown field "x"`}},
		"another ConfigMap":   {"apiVersion: v1\nkind: ConfigMap\ndata: {a: b}", []string{"only a ConfigMap without one"}},
		"in a List":           {"apiVersion: v1\nkind: List\nitems: [{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, x: 1}]", []string{"items[0]: ", `unknown field "x"`}},
		"AKS without one":     {"apiVersion: aks.azure.com/v1alpha1\nkind: SchedulerConfiguration\nspec: {}", []string{"spec.rawConfig: is missing"}},
		"AKS":                 {"apiVersion: aks.azure.com/v1alpha1\nkind: SchedulerConfiguration\nspec: {rawConfig: 'profiles: []'}", []string{"spec.rawConfig: apiVersion and kind: are missing"}},
		"Talos without one":   {"version: v1alpha1\nmachine: {}\ncluster: {}", []string{"without cluster.scheduler.config"}},
		"Talos":               {"version: v1alpha1\ncluster: {scheduler: {config: {x: 1}}}", []string{"cluster.scheduler.config: ", `unknown field "x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Translate([]byte(tc.file), config.Default().Resources)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

// What has no effect on the ranking needs no setting.
func TestTranslateToDefaults(t *testing.T) {
	for name, file := range map[string]string{
		"nothing stated":               header,
		"a profile's name":             inProfile("schedulerName: default-scheduler"),
		"the defaults, stated":         inProfile("pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: LeastAllocated}}}, {name: PodTopologySpread, args: {defaultingType: System}}]"),
		"arguments without any":        inProfile("pluginConfig: [{name: NodeResourcesFit}]"),
		"a filter is off":              inProfile("plugins: {filter: {disabled: [{name: VolumeZone}]}}"),
		"a weight that is the default": inProfile("plugins: {score: {enabled: [{name: TaintToleration, weight: 3}]}}"),
		"both enabled and disabled":    inProfile("plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: 2}], disabled: [{name: NodeAffinity}]}}"),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Translate([]byte(file), config.Default().Resources)
			if err != nil {
				t.Fatal(err)
			}
			text, err := got.YAML()
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > 0 {
				t.Errorf("to set:\n%s", text)
			}
		})
	}
}

// Constraints of an administrator are kept only where the plugin has a say.
func TestDefaultConstraints(t *testing.T) {
	const constraints = "  pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}}]\n"
	for name, tc := range map[string]struct {
		plugins string
		want    config.DefaultConstraints
	}{
		"default plugins":      {"", config.ConstraintsList},
		"does not score":       {"  plugins: {score: {disabled: [{name: PodTopologySpread}]}}\n", config.ConstraintsList},
		"does not filter":      {"  plugins: {filter: {disabled: [{name: PodTopologySpread}]}}\n", config.ConstraintsList},
		"neither":              {"  plugins: {filter: {disabled: [{name: '*'}]}, score: {disabled: [{name: PodTopologySpread}]}}\n", config.ConstraintsSystem},
		"off":                  {"  plugins: {multiPoint: {disabled: [{name: PodTopologySpread}]}}\n", config.ConstraintsSystem},
		"off, but as a filter": {"  plugins: {multiPoint: {disabled: [{name: PodTopologySpread}]}, filter: {enabled: [{name: PodTopologySpread}]}}\n", config.ConstraintsList},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Translate([]byte(inProfile("schedulerName: default-scheduler\n"+constraints+tc.plugins)), config.Default().Resources)
			if err != nil {
				t.Fatal(err)
			}
			if got.Scheduler.DefaultConstraints != tc.want {
				t.Errorf("%s, want %s", got.Scheduler.DefaultConstraints, tc.want)
			}
		})
	}
}
