// Package server brings AdmissionReviews to a handler and answers back, over HTTP and TLS,
// and bounds what callers can make it take: bytes, memory, time, connections. It also serves
// the ports for kubelets and scrapers. The object of a review is the handler's matter.
//
// Files in reading order:
//
//   - http.go: START HERE, bytes in, bytes out
//   - review.go: which parts of a review are read
//   - memory.go: what requests may take
//   - work.go: what a request holds until nobody works on it any more
//   - gather.go: an answer in one piece
//   - buffers.go: memory that requests use again
//   - setup.go: the server's life, from the certificate to the last request
//   - certificate.go: the certificate and its changes
//   - connections.go: the limits of connections
//   - tls.go: TLS versions and who may call
//   - ready.go: is it served?
//   - ports.go: the ports for kubelets and scrapers
//   - metricsfilter.go: who may read the metrics, and how often strangers may ask
package server
