// Package binary compares our model of the scheduler with a kube-scheduler that
// runs, of whatever version: random clusters in a real control plane, pods one
// after another, and the scores that the scheduler writes to its log at -v=10.
// Package agreement is faster and sees more, but only the version whose code can be
// compiled into a test.
//
// The environment variable GPU_BINPACKER_TEST_BIN names a folder with the binaries
// of another version. The result is in bin/reports/scores-VERSION.json.
//
// Files in reading order:
//
//   - binary_test.go: START HERE, the test and its summary
//   - bed_test.go: the control plane, and which version runs
//   - cluster_test.go: a random cluster in it, and a pod that is to be scheduled
//   - log_test.go: what the scheduler's log says
//   - comparison_test.go: both sides' scores, counted
package binary
