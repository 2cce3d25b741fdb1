// Package observability tests metrics, alerts, runbooks and dashboard against each
// other: what one of them names, another must have. It has no code of its own and
// is a module of its own, since Prometheus wants newer versions of what the control
// plane of the other tests is built from.
//
// Files in reading order:
//
//   - metrics_test.go: which metrics there are, with which labels
//   - promql_test.go: expressions name metrics and labels that exist
//   - alerts_test.go: alerts, their unit tests and their runbooks
//   - dashboard_test.go: the dashboard and its ConfigMap
package observability
