package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestPortsAreDifferent(t *testing.T) {
	// Two values, as two processes would have.
	var first, second ports
	defer first.release()
	defer second.release()
	seen := map[int]bool{}
	for range 50 {
		for _, p := range []*ports{&first, &second} {
			port, err := p.reserve()
			if err != nil {
				t.Fatal(err)
			}
			if seen[port] {
				t.Errorf("port %d was given twice", port)
			}
			seen[port] = true
		}
	}
}

func TestSchedulerConfig(t *testing.T) {
	connection := map[string]any{"kubeconfig": "file", "qps": float64(clientQPS), "burst": float64(clientBurst)}
	election := map[string]any{"leaderElect": false}
	tests := map[string]struct {
		config string
		want   map[string]any
	}{
		"default": {
			want: map[string]any{
				"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
				"clientConnection": connection, "leaderElection": election,
			},
		},
		"own": {
			config: "apiVersion: own\nkind: Own\nprofiles: [{schedulerName: packing}]\nleaderElection: {leaderElect: true}",
			want: map[string]any{
				"apiVersion": "own", "kind": "Own",
				"profiles":         []any{map[string]any{"schedulerName": "packing"}},
				"clientConnection": connection, "leaderElection": election,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := schedulerConfig([]byte(tc.config), "file")
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]any{}
			if err := yaml.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMetricsSum(t *testing.T) {
	metrics, err := ParseMetrics([]byte(`# TYPE calls_total counter
calls_total{name="a",code="200"} 3
calls_total{name="a",code="500"} 1
calls_total{name="b",code="200"} 7
# TYPE seconds histogram
seconds_bucket{le="1"} 2
seconds_bucket{le="+Inf"} 5
seconds_sum 9
seconds_count 5
`))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		name   string
		labels map[string]string
		want   float64
	}{
		"all":       {"calls_total", nil, 11},
		"one label": {"calls_total", map[string]string{"name": "a"}, 4},
		"both":      {"calls_total", map[string]string{"name": "a", "code": "500"}, 1},
		"none":      {"calls_total", map[string]string{"name": "c"}, 0},
		"histogram": {"seconds", nil, 5},
		"missing":   {"never_seen", nil, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := metrics.Sum(tc.name, tc.labels); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
