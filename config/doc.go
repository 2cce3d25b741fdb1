// Package config is the typed configuration of gpu-binpacker: what each
// setting means, its default, how it is read and what makes it invalid. It also
// holds the product's public names, so that the labels in the code and in the
// manifests come from one place.
//
// Files in reading order:
//
//   - names.go: labels, annotations and other names other people rely on
//   - config.go: the Configuration type and its defaults
//   - resources.go: which resource names are GPUs
//   - scheduler.go: the model of the scheduler that will place the pods
//   - version.go: versions of Kubernetes, as people and API servers write them
//   - server.go: listening, TLS, limits and logging
//   - load.go: defaults, then the file, then the flags
//   - validate.go: every rule, all errors at once, each with its field path
//   - strategy.go: the rules of the scheduler's scoring strategy
//   - matchconditions.go: the CEL expression the API server filters pods with
//
// The YAML folders beside the Go files are the shipped manifests.
package config
