// Package profiles shows what gpu-binpacker makes of other scheduler profiles than
// kube-scheduler's default one, on a real control plane. Each row is a configuration
// file of kube-scheduler in testdata: the scheduler is started with it, and
// gpu-binpacker with the configuration that `gpu-binpacker check --scheduler-config`
// makes of the same file.
//
//	make test-profiles
//
// It takes minutes, so its tests have a build tag and are no part of make test.
//
// Files in reading order:
//
//   - profiles_test.go: START HERE, the profiles and what they come to
//   - batching_test.go: what opportunistic batching makes of our terms
//   - main_test.go: the control plane, and changing from one profile to the next
package profiles
