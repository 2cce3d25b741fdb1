// Package upgrade holds tests of what changes under a running webhook: the control
// plane, from one Kubernetes version to the next, and gpu-binpacker itself, from an
// earlier commit to this one and back. They need two Kubernetes versions and take
// minutes, so they are compiled only with the build tag upgrade:
//
//	make test-upgrade
//
// Files in reading order:
//
//   - controlplane_test.go: START HERE, API server and scheduler are upgraded in
//     either order; the version becomes unreadable
//   - product_test.go: gpu-binpacker is upgraded under load, and back
//   - commit_test.go: the binary and the configuration of an earlier commit
package upgrade
