// Package webhook answers the API server: it turns an admission request for a
// pod into a patch, or into nothing, and never into a refusal.
//
// Files in reading order:
//
//   - handler.go: START HERE, Handle from request to response
//   - wire.go: which parts of a request are read
//   - decode.go: the pod of a request (package scoring/steering says what of it is ours)
//   - patch.go: from a decision to what the pod is to have of us, and its patch
//   - encode.go: the patch as text
//   - marshal.go: its operations and terms as JSON
//   - outcome.go: what came of a request, for log and metrics
//   - trial.go: all of this for a pod that nobody creates
//   - metrics.go: the metrics
//   - occupancy.go: the metrics of how GPUs are spread over nodes
//   - calls.go: is anybody calling?
//   - http.go: bytes in, bytes out
//   - memory.go: what requests may take
//   - work.go: what a request holds until nobody works on it any more
//   - gather.go: an answer in one piece
//   - buffers.go: memory that requests use again
//   - setup.go: the server's life, from the certificate to the last request
//   - certificate.go: the certificate and its changes
//   - connections.go: its limits
//   - ready.go: is it served?
//   - ports.go: the ports for kubelets and scrapers
//   - metricsfilter.go: who may read the metrics, and how often strangers may ask
//   - tls.go: TLS versions and who may call
package webhook
