package chart

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
)

// helm lint --strict
func TestLint(t *testing.T) {
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	lint := action.NewLint()
	lint.Strict, lint.Namespace = true, Namespace
	everything := values{
		"hostNetwork":   true,
		"webhook":       set("clientCAConfigMap", "ca"),
		"certManager":   set("issuerRef", values{"name": "ca"}),
		"test":          set("namespace", "team-a"),
		"networkPolicy": set("webhookFrom", []any{set("ipBlock.cidr", "10.0.0.2/32")}),
		"metrics": values{
			"readers":        []any{values{"namespace": "monitoring", "name": "prometheus"}},
			"serviceMonitor": values{"enabled": true}, "prometheusRule": values{"enabled": true}, "dashboard": values{"enabled": true},
		},
	}
	for name, given := range map[string]values{"defaults": {}, "everything": everything} {
		t.Run(name, func(t *testing.T) {
			result := lint.Run([]string{dir}, given)
			for _, err := range result.Errors {
				t.Error(err)
			}
			if result.TotalChartsLinted != 1 {
				t.Errorf("%d charts linted", result.TotalChartsLinted)
			}
		})
	}
	// Linting notices a wrong value, so it does look at the chart.
	if result := lint.Run([]string{dir}, set("replicas", "2")); len(result.Errors) == 0 || !strings.Contains(result.Errors[0].Error(), "replicas") {
		t.Errorf("a wrong value gives the errors %v", result.Errors)
	}
}
