// Command e2e measures what a webhook costs those who wait for pods, on a real
// control plane: pods created per second through the API server, and pods bound per
// second by kube-scheduler, without a webhook, with one that does nothing, and with
// gpu-binpacker.
//
// All three are there at the same time, and the label of a namespace says which one is
// called. Each run creates the pods while the scheduler is stopped, which gives the
// first figure, then lets the scheduler go on, which gives the second. The systems
// take turns; the medians count. Everything shares this machine's CPUs.
//
// Files in reading order:
//
//   - main.go: START HERE, flags and the loop over runs and systems
//   - bed.go: the control plane and the webhooks
//   - measure.go: one run
//   - result.go: the table and the report
package main
