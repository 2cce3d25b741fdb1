// Package cli holds the commands of the gpu-binpacker binary, one file each.
//
// Files in reading order:
//
//   - root.go: START HERE, the root command, errors and exit codes
//   - serve.go: the webhook server
//   - serverversion.go: which version the API server says that it is
//   - faults_off.go, faults.go: faults in decisions, for tests, only with a build tag
//   - cluster.go, installed.go: the cluster a command reads, and what is installed there
//   - observe.go: what a command looks at: such a cluster, one in a file or the built-in
//     one, with its configuration
//   - explain.go: where does a pod go and why? The explanation is made in package explain
//   - nodes.go, nodes_table.go, nodes_watch.go: how GPU nodes are used
//   - output.go: flags with a choice, and output for machines; that for people is
//     written by package terminal
//   - check.go: is everything as it should be? The checks are in package check; what to
//     set for a kube-scheduler's configuration file is told by package schedulerconfig
//   - report.go: is it worth it? The report is made in package report
//   - matchconditions.go: the webhook's CEL filter for a configuration
//   - version.go: the version
package cli
