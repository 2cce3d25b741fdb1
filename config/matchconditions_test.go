package config_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// resourceNames and whether the default configuration takes them for GPUs.
var resourceNames = map[string]bool{
	"nvidia.com/gpu": true, "nvidia.com/gpu.shared": true, "nvidia.com/mig-1g.5gb": true, "nvidia.com/mig-3g.20gb": true,
	"nvidia.com/mig-1g.5gb.shared": true, "amd.com/gpu": true, "gpu.intel.com/i915": true, "gpu.intel.com/xe": true,
	"habana.ai/gaudi": true, "aws.amazon.com/neuron": true, "aws.amazon.com/neuroncore": true, "aws.amazon.com/neurondevice": true,

	// Not the hardware itself, left out on purpose, or somebody else's scheme.
	"gpu.intel.com/i915_monitoring": false, "gpu.intel.com/xe_monitoring": false, "google.com/tpu": false, "amd.com/cpx_nps4": false,
	"huawei.com/Ascend910": false, "nvidia.com/gpumem": false, "nvidia.com/gpucores": false, "koordinator.sh/gpu-memory": false,
	// No substring of a name counts.
	"nvidia.com/gpu2": false, "my.nvidia.com/gpu": false, "nvidia.com/GPU": false, "nvidia.com/mig": false, "x.nvidia.com/mig-1g.5gb": false,
	"example.com/gpu": false, "gpu": false, "cpu": false, "memory": false, "ephemeral-storage": false, "hugepages-2Mi": false,
}

func TestIsGPU(t *testing.T) {
	for name, want := range resourceNames {
		if got := config.Default().Resources.IsGPU(name); got != want {
			t.Errorf("IsGPU(%s) = %v, want %v", name, got, want)
		}
	}
	// A bare prefix is no name. Nothing configured: nothing is a GPU.
	for _, resources := range []config.Resources{config.Default().Resources, {}} {
		for _, name := range []string{"nvidia.com/mig-", ""} {
			if resources.IsGPU(name) {
				t.Errorf("IsGPU(%q) with %v", name, resources)
			}
		}
	}
	whole := config.Resources{Prefixes: []string{"vendor.com/"}}
	if !whole.IsGPU("vendor.com/x") || whole.IsGPU("vendor.com/") || whole.IsGPU("vendor.co/x") {
		t.Error("a prefix that is a domain")
	}
}

// The expression that filters pods in the API server, evaluated by the API
// server's own code, agrees with IsGPU on every name, in every place of a pod.
func TestMatchConditionsAgreeWithIsGPU(t *testing.T) {
	tests := map[string]config.Resources{
		"default":       config.Default().Resources,
		"only names":    {Names: []string{"vendor.com/gpu", "google.com/tpu"}},
		"only prefixes": {Prefixes: []string{"nvidia.com/", "google.com/t-", "amd.com/"}},
		"one name":      {Names: []string{"nvidia.com/gpu"}},
	}
	for name, resources := range tests {
		t.Run(name, func(t *testing.T) {
			if errs := config.Validate(change(func(c *config.Configuration) { c.Resources = resources })); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			matches := compile(t, resources)
			for name := range resourceNames {
				for _, list := range []string{"containers", "initContainers"} {
					pod := fmt.Sprintf(`{"spec":{"containers":[{"name":"a","resources":{}}],%q:[{"name":"x"},{"name":"y","resources":{"limits":{"cpu":"1",%q:"1"}}}]}}`, list, name)
					if got, want := matches(t, pod), resources.IsGPU(name); got != want {
						t.Errorf("%s in %s: matches %v, IsGPU %v", name, list, got, want)
					}
				}
			}
		})
	}
}

// Pods that leave things out evaluate without an error. (Only a pod without
// containers does not; the API server refuses it anyway.)
func TestMatchConditionsPods(t *testing.T) {
	tests := map[string]struct {
		pod  string
		want bool
	}{
		"limits":              {`{"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`, true},
		"second container":    {`{"spec":{"containers":[{},{"resources":{"limits":{"amd.com/gpu":"1"}}}]}}`, true},
		"init container only": {`{"spec":{"initContainers":[{"resources":{"limits":{"nvidia.com/mig-1g.5gb":"1"}}}],"containers":[{}]}}`, true},
		"sidecar only":        {`{"spec":{"initContainers":[{"restartPolicy":"Always","resources":{"limits":{"nvidia.com/gpu":"1"}}}],"containers":[{}]}}`, true},
		"zero":                {`{"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"0"}}}]}}`, true}, // Decide judges the amount
		"empty lists":         {`{"spec":{"containers":[],"initContainers":[]}}`, false},
		"no resources":        {`{"spec":{"containers":[{"name":"c"}]}}`, false},
		"empty resources":     {`{"spec":{"containers":[{"resources":{}}]}}`, false},
		"empty limits":        {`{"spec":{"containers":[{"resources":{"limits":{}}}]}}`, false},
		"other limits":        {`{"spec":{"containers":[{"resources":{"limits":{"cpu":"1"},"requests":{"memory":"1Gi"}}}]}}`, false},
		"claims":              {`{"spec":{"containers":[{"resources":{"claims":[{"name":"gpu"}]}}]}}`, false},
		"name in a label":     {`{"metadata":{"labels":{"nvidia.com/gpu":"1"}},"spec":{"nodeSelector":{"nvidia.com/gpu":"x"},"containers":[{}]}}`, false},
		// The API server refuses a GPU request without an equal limit.
		"requests only": {`{"spec":{"containers":[{"resources":{"requests":{"nvidia.com/gpu":"1"}}}]}}`, false},
	}
	matches := compile(t, config.Default().Resources)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := matches(t, tc.pod); got != tc.want {
				t.Errorf("matches %v, want %v", got, tc.want)
			}
		})
	}
}

// A pod of the largest size does not exceed the API server's cost limit, which
// would be an error and, with failurePolicy Ignore, a pod that is not steered.
func TestMatchConditionsCost(t *testing.T) {
	matches := compile(t, config.Default().Resources)
	container := `{"name":"c","resources":{"limits":{"cpu":"1","memory":"1Gi","ephemeral-storage":"1Gi","example.com/a":"1"}}}`
	pod := `{"spec":{"containers":[` + strings.TrimSuffix(strings.Repeat(container+",", 500), ",") + `],"initContainers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`
	if !matches(t, pod) {
		t.Error("no match")
	}
}

// compile returns a function that tells whether the API server would call the
// webhook for a pod.
func compile(t *testing.T, resources config.Resources) func(t *testing.T, pod string) bool {
	t.Helper()
	var accessors []cel.ExpressionAccessor
	for _, condition := range config.MatchConditions(resources) {
		accessors = append(accessors, &matchconditions.MatchCondition{Name: condition.Name, Expression: condition.Expression})
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	evaluator := compiler.CompileCondition(accessors, cel.OptionalVariableDeclarations{}, environment.NewExpressions)
	if errs := evaluator.CompilationErrors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	return func(t *testing.T, pod string) bool {
		t.Helper()
		object := &corev1.Pod{} // as the API server holds it: empty fields may be there
		if err := json.Unmarshal([]byte(pod), object); err != nil {
			t.Fatal(err)
		}
		kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
		attributes := &admission.VersionedAttributes{
			Attributes: admission.NewAttributesRecord(nil, nil, kind, "team-a", "p", schema.GroupVersionResource{Version: "v1", Resource: "pods"},
				"", admission.Create, nil, false, nil),
			VersionedKind:   kind,
			VersionedObject: admission.NewLazyObject(object),
		}
		results, _, err := evaluator.ForInput(t.Context(), attributes, &admissionv1.AdmissionRequest{},
			cel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudgetMatchConditions)
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range results {
			if result.Error != nil {
				t.Fatal(result.Error)
			}
			if matched, ok := result.EvalResult.Value().(bool); !ok || !matched {
				return false
			}
		}
		return true
	}
}
