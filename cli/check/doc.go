// Package check looks at a cluster and tells whether gpu-binpacker can work in it,
// and if not, why and what to do. It only reads; the pods it creates are dry
// runs.
//
// Files in reading order:
//
//   - check.go: START HERE, the list of checks and how they are run
//   - result.go: what a check finds
//   - cluster.go: what the checks read, each thing once
//   - kubernetes.go: 1xx, version, API and permissions
//   - certmanager.go: 2xx, cert-manager and Certificates
//   - cabundle.go: 2xx, the CA that the API server goes by
//   - installation.go: 3xx, webhook configuration, configuration, replicas
//   - calls.go: 3xx, is the webhook called, by the API server's metrics or the pods
//   - trial.go: 3xx, a pod created on trial
//   - attempt.go: 3xx, pods on trial that carry by hand what is added
//   - additions.go: what that is, and what can be done where it is refused
//   - namespaces.go: 4xx, who opted in
//   - nodes.go: 4xx, GPU nodes and resource names
//   - scheduler.go: 5xx, what is assumed of the scheduler, and other schedulers
//   - surroundings.go: 5xx, Karpenter and the descheduler, which may work against steering
//   - table.go: results for people
package check
