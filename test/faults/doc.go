// Package faults breaks things around the installed product, on a real control
// plane, while pods are created: each fault is a row of a table that must show no
// denied pod, steering that resumes by itself, no creation slower than the
// webhook's timeout explains, and bounded memory.
//
//	go test ./faults         # the short form, a part of make test
//	go test ./faults -full   # all rows: make test-faults
//
// The rows are printed and saved in bin/reports/faults.json.
//
// Files in reading order:
//
//   - faults_test.go: START HERE, the table of faults
//   - row_test.go: one row, from the first pod to what it must show
//   - stream_test.go: the pods that are created meanwhile
//   - bed_test.go, main_test.go: what the rows share, and its start
//   - gate.go: a network connection that can fail in several ways
//   - certificates_test.go, processes_test.go, network_test.go, decisions_test.go,
//     clients_test.go, connections_test.go: the faults
//   - memory_test.go, report_test.go: what is measured and shown
package faults
