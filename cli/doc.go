// Package cli holds the commands of the gpu-binpacker binary, one file each.
//
// Files in reading order:
//
//   - root.go: the root command, errors and exit codes
//   - serve.go: the webhook server
//   - faults_off.go, faults.go: faults in decisions, for tests, only with a build tag
//   - matchconditions.go: the webhook's CEL filter for a configuration
//   - version.go: the version
package cli
