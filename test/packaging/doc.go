// Package packaging tests what ships beside the Go code: the manifests, the image
// recipe and the paths that the documentation names. It has no code of its own.
//
// Files in reading order:
//
//   - render_test.go: how a folder of manifests becomes typed objects
//   - manifests_test.go: what must be true of an installation
//   - overlays_test.go: the overlays and samples
//   - image_test.go: the Dockerfile copies what the binary is built from
//   - documentation_test.go: paths and make targets in the documentation exist
package packaging
