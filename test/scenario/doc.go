// Package scenario replays small GPU workloads on a real control plane and reads
// from the API server where the pods went. The demo shows them; the end-to-end
// tests assert them.
//
// Files in reading order:
//
//   - scenarios.go: START HERE, the scenarios and what each must come to
//   - cluster.go: what a scenario runs on
//   - run.go: nodes, workload, waiting, cleaning up
//   - placement.go: where the pods are, read from the API server
package scenario
