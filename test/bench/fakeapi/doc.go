// Package fakeapi is a small API server for benchmarks: it answers list and watch
// requests for nodes, pods and namespaces as kube-apiserver does, from objects that
// a benchmark sets, and costs little CPU of its own, so that what is measured is the
// client.
//
// It speaks what client-go speaks to kube-apiserver about built-in types: HTTPS with
// HTTP/2, protobuf, lists with limit and continue, streamed lists (WatchList,
// sendInitialEvents), watches with bookmarks that go on from a resource version, and
// 410 Gone for one that is too old. Namespaces, or anything else, can be had as
// PartialObjectMetadata. What it does not have: authentication and authorization,
// selectors, writes over HTTP, JSON objects, and the compression of large lists,
// which would make a LIST slower.
//
// Files in reading order:
//
//   - server.go: START HERE, Start and Stop, and what a benchmark changes
//   - store.go: the objects of one resource, encoded, and their history
//   - http.go: discovery, and finding what a request is about
//   - list.go: lists
//   - watch.go: watches
//   - wire.go: the protobuf around encoded objects
package fakeapi
