// Package chart tests the Helm chart in config/helm/gpu-binpacker: that it renders
// what kustomize renders from config/default and its overlays, that it refuses wrong
// values, and that it installs, upgrades and uninstalls on a real control plane. It
// uses Helm as a library.
//
// Files in reading order:
//
//   - chart.go: loading and rendering the chart.
//   - generated.go: which files of the chart are generated, and from what.
//   - valuestable.go: the table of values in the chart's README.
//   - cmd/generate: writes the generated files.
//   - release.go: install, upgrade, test and uninstall with Helm.
package chart
