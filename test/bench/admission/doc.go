// Command admission measures what the real binary costs an API server that calls it
// over HTTPS on loopback, next to two other webhooks in the same run: noop, which
// decodes the pod and allows it, and naive, which looks at all nodes and pods for
// each request. All three have the same HTTP server and TLS.
//
// For each shape and size of cluster the three servers run side by side, and a load
// generator, a process of its own, goes to one after the other, several times. Each
// time it first sends as much as the server takes, which gives requests per second
// and CPU per request, then a moderate number per second, which gives latencies. The
// medians of all times are printed and written to bin/reports/admission.json.
//
// Our reservations last five seconds, and no pod ever appears here that would end
// them, so that high rates fill a small cluster. Where it has not room enough,
// reviews are dry runs, which reserve nothing; the results say so.
//
// Files in reading order:
//
//   - main.go: START HERE, flags, and the loop over clusters, runs and systems
//   - systems.go: the three servers as processes
//   - serve.go: the command serve, noop and naive
//   - load.go: the command load, the load generator
//   - connection.go: one connection as the API server has it
//   - review.go: what is sent, and what a right answer is
//   - statistics.go: percentiles and medians
//   - result.go: the table and the report
package main
