// Package explain tells where a pod would go in a cluster and why, node for node, and for
// a pod that exists also what was decided when it was created.
//
// Files in reading order:
//
//   - explain.go: START HERE, the steps from a pod and a cluster to an explanation
//   - result.go: what an explanation holds, also as JSON
//   - subject.go: the pod as it is created
//   - file.go: the pod that a file holds
//   - quantities.go: mistakes in what the pod of a file asks for
//   - decide.go: the webhook's own handler on the pod
//   - obstacles.go: why the API server would not call the webhook
//   - reasons.go: decisions in words
//   - admission.go: what became of an existing pod
//   - table.go: for people
//   - text.go: amounts and names in a line
package explain
