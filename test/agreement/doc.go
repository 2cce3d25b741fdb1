// Package agreement proves that our model of the scheduler is the scheduler: it
// feeds random clusters to package scoring and to kube-scheduler's own code, in
// this process, and compares integers. Everything is seeded; a failure names the
// seed that reproduces it.
//
// Files in reading order:
//
//   - agreement_test.go: START HERE, our points against the plugins' points
//   - profiles_test.go: other profiles than kube-scheduler's default
//   - schedulerconfig_test.go: what a configuration file of kube-scheduler means
//   - scheduler_test.go: kube-scheduler without its loop: cache, filters, scores
//   - product_test.go: the same objects in our index; package cluster makes them
//   - chain_test.go: a later node of a ranking never beats an earlier one
//   - modes_test.go: the same for settings other than the default
//   - sampling_test.go: clusters of which the scheduler examines only a part
//   - assumptions_test.go: what happens when an assumption of the chain fails
//   - binary: the points against those of a kube-scheduler of any version
package agreement
