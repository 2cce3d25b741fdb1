// Package webhook answers the API server: it turns an admission request for a
// pod into a patch, or into nothing, and never into a refusal. The rooms below it know one
// thing each, bottom up: metrics, server.
//
// Files in reading order:
//
//   - handler.go: START HERE, Handle from request to response
//   - wire.go: which parts of a pod are read
//   - decode.go: the pod of a request (package scoring/steering says what of it is ours)
//   - patch.go: from a decision to what the pod is to have of us, and its patch
//   - encode.go: the patch as text
//   - marshal.go: its operations and terms as JSON
//   - outcome.go: what came of a request, for log and metrics
//   - trial.go: all of this for a pod that nobody creates
package webhook
