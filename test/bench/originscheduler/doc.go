// Command originscheduler is kube-scheduler with one more Score plugin: the rule
// of the scheduler plugin that this product descends from. The packing benchmark
// runs it as a second scheduler, to compare a webhook with what a plugin inside
// the scheduler can do.
//
// Files in reading order:
//
//   - main.go: kube-scheduler plus the plugin
//   - plugin.go: START HERE, the rule
package main
