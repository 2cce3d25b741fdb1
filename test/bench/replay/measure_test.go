package replay

import (
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

func TestUsageOf(t *testing.T) {
	nodes := []workload.Amounts{{GPUs: 8}, {GPUs: 4}, {GPUs: 8}}
	tests := map[string]struct {
		used []int64
		want usage
	}{
		// 20 free, all on empty nodes
		"empty": {[]int64{0, 0, 0}, usage{freeOnEmpty: 1}},
		// 8 + 4 GPUs on occupied nodes; free 5 + 0 + 8, of which 8 on the empty node
		"two nodes": {[]int64{3, 4, 0}, usage{occupied: 2, gpus: 12, freeOnEmpty: 8.0 / 13}},
		"full":      {[]int64{8, 4, 8}, usage{occupied: 3, gpus: 20, freeOnEmpty: 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := usageOf(nodes, tc.used); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestAverage(t *testing.T) {
	var a average
	a.add(usage{occupied: 2, gpus: 16, freeOnEmpty: 0.5})
	a.add(usage{occupied: 3, gpus: 20, freeOnEmpty: 1})
	if occupied, gpus, free := a.mean(); occupied != 2.5 || gpus != 18 || free != 0.75 {
		t.Errorf("got %v, %v, %v, want 2.5, 18, 0.75", occupied, gpus, free)
	}
}
