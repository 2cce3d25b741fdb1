// Package system runs what the packing benchmark compares: one control plane on
// which one system at a time places pods.
//
// Files in reading order:
//
//   - system.go: START HERE, the systems
//   - bed.go: the control plane, and changing from one system to the next
//   - schedulers.go: the profiles of the schedulers
//   - patient.go, patient: longer timeouts, for busy machines
package system
