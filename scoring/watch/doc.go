// Package watch lets an index follow a cluster through the reflectors of client-go.
//
// Files in reading order:
//
//   - follow.go: START HERE, list and watch until the context ends
//   - feed.go: where the reflectors' objects go
package watch
