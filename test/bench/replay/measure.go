package replay

import (
	"slices"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/report"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

// usage is how a cluster is used at one moment.
type usage struct {
	// occupied nodes hold a GPU pod; gpus is what they have.
	occupied int
	gpus     int64
	// freeOnEmpty is the share of free GPUs that are on other nodes, 1 when no
	// GPU is free.
	freeOnEmpty float64
}

// usageOf computes the usage from the GPUs in use per node; nodes are those of
// the workload, in the order of their names.
func usageOf(nodes []workload.Amounts, used []int64) usage {
	var u usage
	var free, freeOnEmpty int64
	for i, n := range nodes {
		free += n.GPUs - used[i]
		if used[i] == 0 {
			freeOnEmpty += n.GPUs
			continue
		}
		u.occupied++
		u.gpus += n.GPUs
	}
	u.freeOnEmpty = 1
	if free > 0 {
		u.freeOnEmpty = float64(freeOnEmpty) / float64(free)
	}
	return u
}

// average adds up samples of equal weight.
type average struct {
	samples                     int
	occupied, gpus, freeOnEmpty float64
}

func (a *average) add(u usage) {
	a.samples++
	a.occupied += float64(u.occupied)
	a.gpus += float64(u.gpus)
	a.freeOnEmpty += u.freeOnEmpty
}

// mean returns the averages of occupied nodes, of their GPUs, and of the share of
// free GPUs on empty nodes.
func (a *average) mean() (occupied, gpus, freeOnEmpty float64) {
	n := float64(max(a.samples, 1))
	return a.occupied / n, a.gpus / n, a.freeOnEmpty / n
}

// waits are waiting times, from a pod's creation to its binding.
type waits struct{ all, large []time.Duration }

func (w *waits) add(gpus int64, wait time.Duration) {
	w.all = append(w.all, wait)
	if gpus >= large {
		w.large = append(w.large, wait)
	}
}

// result returns the times as a report has them.
func (w *waits) result() *report.Waits {
	if w == nil || len(w.all) == 0 {
		return nil
	}
	slices.Sort(w.all)
	slices.Sort(w.large)
	result := &report.Waits{
		Median: w.all[len(w.all)/2].Seconds(), P99: w.all[len(w.all)*99/100].Seconds(),
		Pods8GPU: len(w.large),
	}
	var sum time.Duration
	for _, wait := range w.large {
		sum += wait
	}
	if n := len(w.large); n > 0 {
		result.Mean8GPU, result.Max8GPU = sum.Seconds()/float64(n), w.large[n-1].Seconds()
	}
	return result
}
