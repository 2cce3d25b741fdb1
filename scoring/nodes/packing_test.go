package nodes_test

import (
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

func TestOriginScore(t *testing.T) {
	for _, tc := range []struct{ allocated, allocatable, want int64 }{
		{3, 4, 75}, {1, 4, 25}, {0, 4, 0}, {4, 4, 100}, {1, 3, 33},
		{7, 6, 100}, // more in use than allocatable
		{1, 0, 0}, {0, 0, 0}, {-1, 4, 0},
	} {
		if got := nodes.OriginScore(tc.allocated, tc.allocatable); got != tc.want {
			t.Errorf("OriginScore(%d, %d) = %d, want %d", tc.allocated, tc.allocatable, got, tc.want)
		}
	}
}
