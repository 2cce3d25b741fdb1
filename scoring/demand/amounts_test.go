package demand_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
)

func TestAmountOf(t *testing.T) {
	tests := map[string]struct {
		name corev1.ResourceName
		q    string
		want int64
	}{
		"cpu":             {"cpu", "1500m", 1500},
		"cpu rounds up":   {"cpu", "100u", 1},
		"huge cpu":        {"cpu", "1e15", demand.MaxAmount},
		"memory":          {"memory", "1152Gi", 1152 << 30},
		"memory rounds":   {"memory", "1500m", 2},
		"huge memory":     {"memory", "1e30", demand.MaxAmount},
		"negative memory": {"memory", "-5", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := demand.AmountOf(tc.name, resource.MustParse(tc.q)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAmountsPlus(t *testing.T) {
	a := demand.Amounts{{"a", 1}, {"c", 3}}
	b := demand.Amounts{{"a", 1}, {"b", 2}}
	if diff := cmp.Diff(demand.Amounts{{"a", 2}, {"b", 2}, {"c", 3}}, a.Plus(1, b)); diff != "" {
		t.Errorf("sum (-want +got):\n%s", diff)
	}
	// Zero disappears; below zero stays visible.
	if diff := cmp.Diff(demand.Amounts{{"b", -2}, {"c", 3}}, a.Plus(-1, b)); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}
