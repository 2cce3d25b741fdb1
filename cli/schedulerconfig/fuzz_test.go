package schedulerconfig

import (
	"reflect"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// FuzzTranslate reads arbitrary files. Whatever is to be set for one is a valid
// configuration and describes the same scheduler.
func FuzzTranslate(f *testing.F) {
	for _, text := range []string{
		"", header, header + "---\n" + header, header + "profiles: [null]", header + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: null}]}]",
		inProfile("pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio, resources: [{name: a, weight: 100}], requestedToCapacityRatio: {shape: [{utilization: 0, score: 1}]}}}}]"),
		inProfile("pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}}]"),
		inProfile("plugins: {multiPoint: {enabled: [{name: A, weight: 7}], disabled: [{name: '*'}]}, score: {enabled: [{name: NodeAffinity, weight: 3}]}}"),
		inProfile("schedulerName: 'not valid'"), header + "extenders: [{prioritizeVerb: a, weight: 1}]\npercentageOfNodesToScore: 30",
		"version: v1alpha1\ncluster: {scheduler: {config: {profiles: []}}}", "apiVersion: v1alpha1\nkind: KubeSchedulerConfig\nconfig: {}",
		"apiVersion: aks.azure.com/v1alpha1\nkind: SchedulerConfiguration\nspec: {rawConfig: '" + `{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}` + "'}",
		"apiVersion: v1\nkind: List\nitems: [null, {apiVersion: v1, kind: ConfigMap, data: {a: 'kind: KubeSchedulerConfiguration'}}]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		translation, err := Translate(data, config.Default().Resources)
		if err != nil {
			return
		}
		section, err := translation.YAML()
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Parse(append([]byte("apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\n"), section...))
		if err != nil {
			t.Fatalf("%v in\n%s", err, section)
		}
		if errs := config.Validate(cfg); len(errs) > 0 {
			t.Errorf("%v in\n%s", errs.ToAggregate(), section)
		}
		if !reflect.DeepEqual(cfg.Scheduler, translation.Scheduler) {
			t.Errorf("read as %+v\nset as\n%s", translation.Scheduler, section)
		}
	})
}
