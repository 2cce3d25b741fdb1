package report

import (
	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

// Group is the results of one workload side by side.
type Group struct {
	// Case is the workload, Mode quick or full.
	Case, Mode string
	Rows       []Row
	// WorstGPUs is the most GPUs on occupied nodes in any row.
	WorstGPUs float64
}

// Row is what one system came to in a group: medians over the seeds.
type Row struct {
	System           string
	Seeds            int
	Occupied, Ideal  float64
	GPUs, IdealGPUs  float64
	Requested        float64
	FreeOnEmptyNodes float64
	Unplaced8        float64
	Pods, Bound      int
	Landed           Landed
	// Waits has medians over the seeds; nil without churn.
	Waits           *Waits
	Late, Unsteered int
	Seconds         float64
	Served          []int
	NodeUse         [][2]int64
}

// systemOrder is the order of rows.
var systemOrder = []string{"default", "most-allocated", "plugin", "ours-1", "ours-2", "bound"}

// Groups sorts results into groups, in the order in which they first came.
func Groups(results []Result) []Group {
	type key struct{ name, mode string }
	var order []key
	members := map[key][]Result{}
	for i := range results {
		k := key{results[i].Case(), results[i].Mode}
		if members[k] == nil {
			order = append(order, k)
		}
		members[k] = append(members[k], results[i])
	}
	var groups []Group
	for _, k := range order {
		g := Group{Case: k.name, Mode: k.mode}
		for _, system := range systemOrder {
			if row, ok := newRow(system, members[k]); ok {
				g.Rows = append(g.Rows, row)
				g.WorstGPUs = max(g.WorstGPUs, row.GPUs)
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// newRow takes the medians of one system's results; false when it has none.
func newRow(system string, results []Result) (Row, bool) {
	var own []Result
	for _, r := range results {
		if r.SystemName() == system {
			own = append(own, r)
		}
	}
	if len(own) == 0 {
		return Row{}, false
	}
	median := func(value func(*Result) float64) float64 {
		values := make([]float64, len(own))
		for i := range own {
			values[i] = value(&own[i])
		}
		return reports.Median(values)
	}
	row := Row{
		System: system, Seeds: len(own),
		Occupied:         median(func(r *Result) float64 { return r.OccupiedNodes }),
		Ideal:            median(func(r *Result) float64 { return float64(r.IdealNodes) }),
		GPUs:             median(func(r *Result) float64 { return r.GPUsOnOccupiedNodes }),
		IdealGPUs:        median(func(r *Result) float64 { return float64(r.IdealGPUs) }),
		Requested:        median(func(r *Result) float64 { return r.GPUsRequested }),
		FreeOnEmptyNodes: median(func(r *Result) float64 { return r.FreeOnEmptyNodes }),
		Unplaced8:        median(func(r *Result) float64 { return float64(r.Unplaced8GPU) }),
		Seconds:          median(func(r *Result) float64 { return r.BindAllSeconds }),
	}
	row.Waits = medianWaits(own)
	row.addSums(own)
	return row, true
}

// medianWaits takes the medians of waiting times, nil if no result has any.
func medianWaits(own []Result) *Waits {
	var measured []*Waits
	for i := range own {
		if own[i].Waits != nil {
			measured = append(measured, own[i].Waits)
		}
	}
	if len(measured) == 0 {
		return nil
	}
	median := func(value func(*Waits) float64) float64 {
		values := make([]float64, len(measured))
		for i, w := range measured {
			values[i] = value(w)
		}
		return reports.Median(values)
	}
	return &Waits{
		Median:   median(func(w *Waits) float64 { return w.Median }),
		P99:      median(func(w *Waits) float64 { return w.P99 }),
		Mean8GPU: median(func(w *Waits) float64 { return w.Mean8GPU }),
		Max8GPU:  median(func(w *Waits) float64 { return w.Max8GPU }),
	}
}

// addSums adds what is summed over the seeds.
func (r *Row) addSums(own []Result) {
	for _, one := range own {
		r.Pods += one.Pods
		r.Bound += one.Bound
		r.Landed.Target += one.Landed.Target
		r.Landed.Listed += one.Landed.Listed
		r.Landed.Other += one.Landed.Other
		r.Late += one.Late
		r.Unsteered += one.Unsteered
		for i, n := range one.ServedByReplica {
			if i == len(r.Served) {
				r.Served = append(r.Served, 0)
			}
			r.Served[i] += n
		}
		if r.NodeUse == nil {
			r.NodeUse = one.NodeUse
		}
	}
}
