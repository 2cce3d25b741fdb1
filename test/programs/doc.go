// Package programs builds the programs of the test bed into bin/: etcd, the programs of
// Kubernetes, kwok and cert-manager, from Go modules. It imports nothing of Kubernetes,
// so that it is compiled in seconds, and can tell how far it is with the rest.
//
//	binaries, err := programs.Build(ctx, os.Stderr)
//
// The programs of Kubernetes have the version in test/go.mod, unless
// GPU_BINPACKER_TEST_KUBERNETES names another one, such as 1.34.4. Who needs two
// versions gets each by BuildKubernetes.
//
// Files in reading order:
//
//   - kubernetes.go: START HERE, Build and the Kubernetes versions
//   - binaries.go: the programs, and where they are
//   - gobuild.go: which of them have to be built
//   - prebuilt.go, prebuilt.txt: those that can be fetched instead
//   - batch.go: building several with one go command
//   - progress.go: how far that is
//   - release.go: building what can be fetched
//   - kubernetesmodule.go: a module to build another Kubernetes version from
//   - repository.go: the checkout, and what the go command knows of its modules
//   - cmd/build: the same from the command line
package programs
