package pool

import (
	"testing"
)

func TestHistogramMedian(t *testing.T) {
	var h histogram
	if got := h.median(); got != 0 {
		t.Errorf("empty: %d", got)
	}
	for _, v := range []int64{8000, 8000, 8000, 1, 1 << 45} {
		h.add(1, v)
	}
	if got := h.median(); got != 7680 { // 8000 = 2^12 * 1.95, bucket 15/8 * 2^12
		t.Errorf("got %d, want 7680", got)
	}
	h.add(-1, 1<<45)
	h.add(-1, 8000)
	h.add(-1, 8000)
	h.add(-1, 8000)
	if got := h.median(); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}
