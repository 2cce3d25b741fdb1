// Command versions shows how the product does on each Kubernetes version: it builds
// the programs of the version, runs the test suites on them and goes on with the
// next version, whatever failed. At the end it writes bin/reports/versions.json and
// the table in docs/compatibility.md.
//
//	make test-versions VERSIONS='1.34.4 1.36.3'
//
// Suites:
//
//   - e2e: the end-to-end tests.
//   - packing: 64 pods on 16 nodes and 240 pods on 60 nodes, from the benchmark of
//     packing: the pods of a ReplicaSet, one by one and in a burst, with one and two
//     replicas of the webhook.
//   - scores: the scheduler binary's scores beside those of our model, from
//     test/agreement/binary.
//   - scenarios: those of the end-to-end tests that are about steering and packing;
//     for a look in a few minutes, no part of the default.
//
// The exit code is 1 when anything failed or the packing was not ideal.
//
// Files in reading order:
//
//   - main.go: START HERE, flags and the loop over versions
//   - suites.go: what each suite runs and reads
//   - command.go: a command whose output is shown and kept
//   - testevents.go: the events of go test -json
//   - result.go: the keys of versions.json, and what counts as a problem
//   - table.go: the table in docs/compatibility.md
package main
