// Package steering knows what on a pod is ours and which pods are steered. It is the only
// place that does: the webhook, the index, the commands and the simulation ask here.
//
// Files in reading order:
//
//   - reason.go: why a pod is not steered
//   - eligible.go: which pods are left alone
//   - part.go: START HERE for what we add to a pod: how parts are found, taken out and written
//   - term.go: the preferred node-affinity terms
//   - constraint.go: the neutral spread constraint
//   - late.go: the soft pod affinity of late steering
//   - label.go: its label
//   - annotation.go: our annotations
//   - landing.go: where the scheduler put a steered pod
package steering
