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
//   - random_test.go: random nodes and pods
//   - scheduler_test.go: kube-scheduler without its loop: cache, filters, scores
//   - product_test.go: the same objects in our index, pods through our webhook
//   - chain_test.go: a later node of a ranking never beats an earlier one
//   - assumptions_test.go: what happens when an assumption of the chain fails
package agreement
