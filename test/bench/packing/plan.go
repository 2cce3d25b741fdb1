package main

import (
	"fmt"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

// The modes.
const (
	quick = "quick"
	full  = "full"
)

// defaultSeeds is how many seeds a workload with randomness has in full mode.
const defaultSeeds = 5

// plan lists the workloads of a mode. Those of the trace need its folder. seeds 0
// means the default.
func plan(mode, trace, list string, seeds int) ([]*workload.Workload, error) {
	var openb *workload.Trace
	if trace != "" {
		var err error
		if openb, err = workload.ReadTrace(trace, list); err != nil {
			return nil, err
		}
	}
	switch mode {
	case quick:
		return quickPlan(max(seeds, 1)), nil
	case full:
		random := seeds
		if seeds == 0 {
			random = defaultSeeds
		}
		workloads := fullUniform(max(seeds, 1))
		for seed := range random {
			workloads = append(workloads, fullRandom(openb, uint64(seed+1))...)
		}
		return workloads, nil
	default:
		return nil, fmt.Errorf("-mode is %s or %s", quick, full)
	}
}

// quickPlan is small: it shows the order of the systems.
func quickPlan(seeds int) []*workload.Workload {
	var list []*workload.Workload
	for i := range seeds {
		seed := uint64(i + 1)
		list = append(list,
			workload.NewUniform(16, 0.5, workload.ReplicaSet, workload.Sequential, seed),
			workload.NewUniform(16, 0.5, workload.ReplicaSet, workload.Burst, seed),
			workload.NewUniform(60, 0.5, workload.ReplicaSet, workload.Burst, seed),
			workload.NewWaiting(16, seed),
			workload.NewMixed(16, 0.5, workload.Burst, seed),
			workload.NewChurn(38, 0.6, 10, 8*time.Second, seed),
		)
	}
	return list
}

// fullUniform are the workloads in which nothing is random.
//
// Left out: one pod after another on 1,000 nodes, since 4,000 pods one by one
// take minutes per system and differ from 200 nodes only in the scheduler's
// sampling, which the bursts there show as well.
func fullUniform(seeds int) []*workload.Workload {
	var list []*workload.Workload
	for i := range seeds {
		seed := uint64(i + 1)
		for _, nodes := range []int{16, 60, 200} {
			for _, owner := range []workload.Owner{workload.ReplicaSet, workload.Job, workload.Bare} {
				for _, arrival := range []workload.Arrival{workload.Sequential, workload.Burst} {
					list = append(list, workload.NewUniform(nodes, 0.5, owner, arrival, seed))
				}
			}
		}
		list = append(list, workload.NewWaiting(16, seed), workload.NewWaiting(60, seed))
		thousand := workload.NewUniform(1000, 0.5, workload.ReplicaSet, workload.Burst, seed)
		// 2,000 pods on 40,000 GPUs: a probe of the largest clusters.
		fiveThousand := workload.NewUniform(5000, 0.05, workload.ReplicaSet, workload.Burst, seed)
		for _, w := range []*workload.Workload{thousand, fiveThousand} {
			w.BurstSize = 500
			list = append(list, w)
		}
	}
	return list
}

// Rates of full mode, in pods per second.
const (
	// churnRate lets a run last two to three mean lifetimes.
	churnRate = 20
	openbRate = 60
	// openbChurnRate is what the scheduler can follow on two cores beside the rest
	// of the control plane: pods that come and pods that go are 60 a second.
	openbChurnRate = 30
)

// multiGPUShares are the shares of GPUs that pods with several of them ask for in
// the mixes made of the trace.
var multiGPUShares = []float64{0.3, 0.6}

// fullRandom are the workloads that depend on a seed.
func fullRandom(openb *workload.Trace, seed uint64) []*workload.Workload {
	var list []*workload.Workload
	for _, nodes := range []int{16, 60} {
		for _, arrival := range []workload.Arrival{workload.Sequential, workload.Burst} {
			list = append(list, workload.NewMixed(nodes, 0.5, arrival, seed))
		}
	}
	for _, load := range []float64{0.6, 0.8} {
		// A quarter of openb.
		list = append(list, workload.NewChurn(305, load, churnRate, 90*time.Second, seed))
	}
	if openb == nil {
		return list
	}
	for _, load := range []float64{0.3, 0.6} {
		list = append(list, openb.Workload(load, 0, seed), openb.Workload(load, openbRate, seed))
	}
	list = append(list, openb.ChurnWorkload(0.6, openbChurnRate, seed))
	for _, share := range multiGPUShares {
		mix := openb.WithMultiGPU(share, seed)
		list = append(list, mix.Workload(0.3, 0, seed), mix.Workload(0.3, openbRate, seed),
			mix.ChurnWorkload(0.6, openbChurnRate, seed))
	}
	return list
}
