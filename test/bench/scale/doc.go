// Command scale measures what gpu-binpacker needs in a cluster of 5,000 nodes and
// 150,000 pods, as large as those of production: memory, the time until it is ready
// next to a bare LIST of the same objects by client-go, and CPU while node statuses
// and pods change next to that of informers that do nothing. The API server is a fake one in this process (test/bench/fakeapi).
// It prints a table and writes bin/reports/scale.json.
//
// Memory is read after a time to settle, in which Go has collected what the initial
// list left and given it back. What a node and a pod take is the difference to a
// process that sees no nodes, and to one that sees no pods.
//
// Files in reading order:
//
//   - main.go: START HERE, flags and the order of the measurements
//   - contents.go: what is in the cluster, and its changes
//   - list.go: the command list, the bare LIST
//   - watch.go: the command watch, bare informers
//   - measure.go: one measurement each
//   - result.go: the table and the report
//   - attack.go: instead of all that, an attack on all bounds of memory at once
//   - attack_pods.go: its pods in the API
//   - attack_reviews.go: its requests
package main
