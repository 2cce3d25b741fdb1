package index

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// A pod that we were asked about may never be created: a quota or another webhook refuses
// it, or it was a mistake of its author. Its reservation holds room for nobody until it
// ends. Who goes on asking could make a cluster look full that way: 40 pods of 8 GPUs a
// second hold 200 nodes. So for a namespace of which one pod after the other never came,
// nothing is reserved, until one comes. Its pods are ranked and steered all the same, so
// that a namespace at its quota loses little: of the pods that it is allowed at last, the
// first few may get the same room, until one of them is seen.
//
// When the watch stalls no pod is seen, of whatever namespace. So only those count that the
// watch must have shown: it has shown pods that were created later.

// unseen are the decisions whose pods never came, by namespace.
type unseen struct {
	// total is how many there were since the start.
	total int
	runs  map[string]run
}

// run are those of a namespace of which no pod with GPUs came in between.
type run struct {
	count int
	// last is when the last one was decided about, by the API server's clock.
	last time.Time
	// stopped: nothing is reserved for the namespace.
	stopped bool
}

const (
	// mostUnseen is how many in a row are too many. Where one creation in ten fails for
	// whatever reason, so many fail in a row once in a hundred million times. They are what a
	// namespace can hold at a time by this: 8 nodes, for five seconds.
	mostUnseen = 8
	// creationTime is what passes between a decision and the creation of its pod at most:
	// other webhooks and the write to etcd. A second of it is what the clocks' difference
	// is too much (see clock).
	creationTime = 2 * time.Second
	// maxRuns bounds memory, should anybody but the API server ask about pods of
	// namespaces that do not exist: it is several times what clusters have of namespaces
	// whose creations fail at the same time.
	maxRuns = 1000
)

// note counts a decision whose pod did not come, at its time by the API server's clock.
func (u *unseen) note(namespace string, decided time.Time) {
	u.total++
	r, known := u.runs[namespace]
	if !known && len(u.runs) >= maxRuns {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(u.runs)), func(a, b string) int {
			return cmp.Or(u.runs[a].last.Compare(u.runs[b].last), cmp.Compare(a, b))
		})
		delete(u.runs, oldest)
	}
	r.count++
	if decided.After(r.last) {
		r.last = decided
	}
	u.runs[namespace] = r
}

// end forgets those of a namespace: a pod of it came, or it has not opted in any more.
func (u *unseen) end(namespace string) { delete(u.runs, namespace) }

// stops tells whether nothing is to be reserved for a namespace. newest is when the newest
// pod was created that the watch has shown.
func (u *unseen) stops(namespace string, newest time.Time) bool {
	r, known := u.runs[namespace]
	if !known || r.stopped || r.count < mostUnseen || !newest.After(r.last.Add(creationTime)) {
		return r.stopped
	}
	r.stopped = true
	u.runs[namespace] = r
	return true
}

// Unseen is how many decisions there were, since the start, whose pod was not seen before
// the reservation ended.
func (ix *Index) Unseen() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.expire(ix.Now())
	return ix.unseen.total
}
