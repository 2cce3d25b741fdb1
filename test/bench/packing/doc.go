// Command packing compares, on one real control plane on this machine, how
// tightly GPU pods are packed by kube-scheduler alone, by its MostAllocated
// profile, by the origin's plugin inside the scheduler, and by gpu-binpacker.
//
// Every run is saved in bin/reports/packing.json when it ends, beside those of
// earlier invocations; packing.html draws them. With -resume, runs that are saved
// already are left out, so that a long list can be worked off in parts.
//
// Files in reading order:
//
//   - main.go: START HERE, flags and the loop over the runs
//   - plan.go: which workloads are replayed in which mode
//   - check.go: what the results must show
package main
