package main

import (
	"math"
	"time"
)

// percentile returns the smallest value that at least that part of the sorted values
// does not exceed.
func percentile(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(part * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
