// Package metrics counts what comes of admission requests, and shows the index, the served
// certificate and the scheduler's version to whoever scrapes. It knows nothing of how requests
// come or are answered.
//
// Files in reading order:
//
//   - metrics.go: START HERE, what is counted of requests and read of the index
//   - occupancy.go: the metrics of how GPUs are spread over nodes
//   - calls.go: is anybody calling?
package metrics
