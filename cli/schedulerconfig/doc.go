// Package schedulerconfig reads a KubeSchedulerConfiguration and tells how the
// configuration of gpu-binpacker describes that scheduler, and what it cannot
// describe. It reads no cluster.
//
// Files in reading order:
//
//   - translate.go: START HERE, from profiles to our section scheduler
//   - find.go: where a file holds the KubeSchedulerConfiguration
//   - decode.go: decoding it as kube-scheduler does
//   - profile.go: one profile
//   - plugins.go: which plugins score, with which weights
//   - args.go: the arguments of the plugins that our model knows
//   - notes.go: what is not modelled
//   - text.go: all of this as YAML to paste, with comments
package schedulerconfig
