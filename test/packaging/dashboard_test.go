package packaging

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The ConfigMap of the dashboard has the label that Grafana's sidecar looks for, and the
// dashboard.
func TestDashboardConfigMap(t *testing.T) {
	configMap := find[*corev1.ConfigMap](t, decode(t, render(t, "grafana")), "gpu-binpacker-dashboard")
	if configMap.Labels["grafana_dashboard"] != "1" {
		t.Errorf("labels %v", configMap.Labels)
	}
	const file = "gpu-binpacker.json"
	if len(configMap.Data) != 1 || configMap.Data[file] != read(t, "config/grafana/dashboard.json") {
		t.Errorf("data is not %s alone: %v", file, configMap.Data)
	}
}
