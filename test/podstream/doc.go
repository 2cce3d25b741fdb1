// Package podstream creates pods at a steady rate, as the users of a cluster do,
// and notes what came of each: the pods that must not suffer while a test breaks or
// attacks what is around them.
//
// Files in reading order:
//
//   - podstream.go: START HERE, a stream from its start to its stop
//   - pods.go: the pods that are created
package podstream
