// Package validation proves that no pod is refused because of a patch of ours: it
// patches pods in this process and lets the API server's own code judge them
// before and after. The corpus of package webhook comes first, then pods that a
// fuzzer makes.
//
// Files in reading order:
//
//   - pods_test.go: START HERE, what must hold for every pod; the tests
//   - apiserver_test.go: the API server's side: decoding, defaulting, validation
//   - webhook_test.go: our side: handlers on clusters of several kinds
//   - golden_test.go: the corpus of package webhook
//   - generator_test.go: pods made from bytes
//   - affinity_test.go: their affinity and spread constraints
package validation
