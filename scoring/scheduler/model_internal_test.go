package scheduler

import (
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func TestTaintPoints(t *testing.T) {
	m := Model{cfg: &config.Scheduler{PluginWeights: config.PluginWeights{TaintToleration: 3}}, MaxSoftTaints: 4}
	for _, tc := range []struct {
		taints int64
		want   PointRange
	}{
		{0, PointRange{300, 300}},
		{1, PointRange{0, 225}}, // 3*(100-100*1/4)
		{4, PointRange{0, 0}},
	} {
		if got := m.taintPoints(tc.taints); got != tc.want {
			t.Errorf("%d taints: %+v, want %+v", tc.taints, got, tc.want)
		}
	}
}

func TestNormalizedImage(t *testing.T) {
	for name, want := range map[string]string{
		"train": "train:latest", "train:v1": "train:v1", "reg:5000/train": "reg:5000/train:latest", "reg:5000/train:v1": "reg:5000/train:v1",
	} {
		if got := normalizedImage(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
