// Package scoring decides where a GPU pod should go: it filters the nodes that can take the
// pod, ranks them by bin-packing and turns the rank into weights that make the default
// scheduler follow it. The rooms below it know one thing each, bottom up: steering, demand,
// nodes, scheduler, pool, reduced, index, watch.
//
// Files in reading order:
//
//   - scoring.go: START HERE, Decide in its steps: demand, view, feasible, rank, weigh, reserve
//   - search.go: feasible, going through a pool
//   - ranking.go: rank, the order of the candidates
//   - tail.go: the nodes listed for the part of a large cluster that the scheduler examines
//   - weights.go: weigh, from the order to weights
//   - late.go: late steering for pods that have to wait
//   - predict.go: the points that the scheduler will give
//   - explain.go: everything a decision goes by, for people
package scoring
