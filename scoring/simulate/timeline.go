package simulate

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// departure is the end of a pod that was placed.
type departure struct {
	at int64
	// i is the place of the pod among the arrivals.
	i int
}

// departures is a heap, soonest first.
type departures []departure

func (d departures) Len() int { return len(d) }
func (d departures) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(d[i].at, d[j].at), cmp.Compare(d[i].i, d[j].i)) < 0
}
func (d departures) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *departures) Push(x any)   { *d = append(*d, x.(departure)) }
func (d *departures) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	*d = (*d)[:last]
	return x
}

// next is when the first pod ends, or never.
func (d departures) next() int64 {
	if len(d) == 0 {
		return math.MaxInt64
	}
	return d[0].at
}

func (d *departures) pop() departure     { return heap.Pop(d).(departure) }
func (d *departures) push(e departure)   { heap.Push(d, e) }
func inTime(a, b Arrival) int            { return cmp.Compare(a.At, b.At) }
func nominalEnd(a Arrival) (int64, bool) { return a.At + a.Duration, a.Duration >= 0 }

// busiest is the first moment at which the most GPUs are asked for, if every pod is
// placed when it arrives: a moment that does not depend on the rule.
func busiest(arrivals []Arrival, gpus []int64) int64 {
	type change struct{ at, gpus int64 }
	var changes []change
	for i, a := range arrivals {
		changes = append(changes, change{a.At, gpus[i]})
		if end, ends := nominalEnd(a); ends {
			changes = append(changes, change{end, -gpus[i]})
		}
	}
	// What ends at a time does so before anything begins then.
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.gpus, b.gpus))
	})
	var sum, most, at int64
	for _, c := range changes {
		if sum += c.gpus; sum > most {
			most, at = sum, c.at
		}
	}
	return at
}
