// Package cli holds the commands of the gpu-binpacker binary, one file each.
//
// Files in reading order:
//
//   - root.go: START HERE, the root command, errors and exit codes
//   - serve.go: the webhook server
//   - follow.go, serverversion.go: how an index and the version of the scheduler follow the cluster
//   - faults_off.go, faults.go: faults in decisions, for tests, only with a build tag
//   - cluster.go, installed.go: the cluster a command reads, and what is installed there
//   - statefile.go: a cluster in a file, or the built-in one
//   - explain.go: where a pod goes and why
//   - explain_file.go, explain_resources.go: the pod of a file, and what it asks for
//   - explain_decide.go: the webhook's handler on that pod
//   - explain_reasons.go: reasons in words
//   - explain_admission.go: what became of an existing pod
//   - explain_result.go, explain_table.go: for machines, and for people
//   - nodes.go, nodes_table.go, nodes_watch.go: how GPU nodes are used
//   - table.go: output on a terminal
//   - check.go: is everything as it should be? The checks are in package check
//   - check_scheduler.go: what to set for a kube-scheduler's configuration file, by
//     package schedulerconfig
//   - report.go: is it worth it? The report is made in package report
//   - matchconditions.go: the webhook's CEL filter for a configuration
//   - version.go: the version
package cli
