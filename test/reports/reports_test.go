package reports

import "testing"

func TestMedian(t *testing.T) {
	tests := map[string]struct {
		values []float64
		want   float64
	}{
		"none": {nil, 0}, "one": {[]float64{3}, 3}, "odd": {[]float64{9, 1, 5}, 5}, "even": {[]float64{4, 1, 2, 9}, 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Median(tc.values); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
