package main

import "testing"

func TestNodeScore(t *testing.T) {
	tests := map[string]struct{ allocated, allocatable, want int64 }{
		"three of four":     {3, 4, 75}, // 100*3/4
		"one of four":       {1, 4, 25}, // 100*1/4
		"rounds down":       {1, 3, 33}, // 100/3 = 33.3
		"empty":             {0, 8, 0},
		"no GPU":            {0, 0, 0},
		"more than it has":  {9, 8, 100}, // a GPU went unhealthy
		"a negative amount": {-1, 8, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := nodeScore(tc.allocated, tc.allocatable); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
