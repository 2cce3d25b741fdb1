// Package reduced makes of the pods and nodes of the API what the index reads of them: a
// Pod takes several kilobytes, what is read of it some hundred bytes.
//
// Files in reading order:
//
//   - reduced.go: START HERE, what is read of a pod
//   - outcome.go: what a pod shows of how pods start on its node
//   - strip.go: the same as an object of the API, for state files
//   - loads.go: loads that many pods have in common
package reduced
