// Package cli holds the commands of the gpu-binpacker binary, one file each.
//
// Files in reading order:
//
//   - root.go: the root command, errors and exit codes
//   - serve.go: the webhook server
//   - matchconditions.go: the webhook's CEL filter for a configuration
//   - version.go: the version
package cli
