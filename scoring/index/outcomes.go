package index

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
)

// Bounds of what is kept of a node, so that nobody fills the memory with pods that fail.
const (
	// maxRefusals is how many refusals are kept one by one, so that they may become known
	// in any order. Of older ones only the rows are kept that they make.
	maxRefusals = 32
	// maxRows is for how many scopes. Two put a node out for everybody, and a tenant
	// with many shapes loses only rows of shapes at first.
	maxRows = 32
	// maxStarts is for how many subjects the latest start is kept: a node has a handful of
	// kinds of pods. It matters for refusals that become known later only.
	maxStarts = 32
)

// outcomes is what pods have shown of a node, those that are gone by now as well.
type outcomes struct {
	// since is when the node was created, if that is known.
	since time.Time
	// starts are the latest ones, refusals the latest since then, in order.
	starts   []start
	refusals []refusal
	// rows are what all refusals up to the time of folded make.
	rows   map[scope]row
	folded time.Time
	// scopes are those in which the node is in back-off.
	scopes []scope
}

// start is the latest start of a pod.
type start struct {
	subject
	at time.Time
}

// refusal is a pod that did not start. A pod with several GPU resources makes one of each.
type refusal struct {
	scope
	pod uint64
	at  time.Time
}

// compare sorts by time. What happened at the same time gets an order that does not depend
// on who heard of it first.
func (r refusal) compare(o refusal) int {
	return cmp.Or(r.at.Compare(o.at), cmp.Compare(r.namespace, o.namespace), cmp.Compare(r.pod, o.pod), cmp.Compare(r.gpu, o.gpu))
}

// shape stands for all requests of a pod. It is never zero.
type shape uint64

// hashSeed is the process' own: nobody can make up two shapes, or two pods, that are taken
// for one.
var hashSeed = maphash.MakeSeed()

func shapeOf(requests demand.Amounts) shape {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	var value [8]byte
	for _, a := range requests {
		_, _ = h.WriteString(string(a.Name))
		binary.LittleEndian.PutUint64(value[:], uint64(a.Value))
		_, _ = h.Write(value[:])
	}
	return shape(max(h.Sum64(), 1))
}

func hashOf(uid types.UID) uint64 { return maphash.String(hashSeed, string(uid)) }

// note takes a pod's outcome in, and tells whether refusals have changed.
func (o *outcomes) note(pod *reduced.Pod, subjects []subject, at time.Time, cfg config.Backoff) (changed bool) {
	for _, s := range subjects {
		all := subject{gpu: s.gpu}
		switch pod.Outcome {
		case reduced.OutcomeStarted:
			changed = o.startedAt(all, at) || changed
			changed = o.startedAt(s, at) || changed
		case reduced.OutcomeRefused:
			changed = o.refusedAt(refusal{scope{pod.Namespace, all}, hashOf(pod.UID), at}, cfg) || changed
		case reduced.OutcomeRefusedShape:
			changed = o.refusedAt(refusal{scope{pod.Namespace, s}, hashOf(pod.UID), at}, cfg) || changed
		case reduced.OutcomeUnknown:
		}
	}
	return changed
}

// startedAt notes a start, which ends what was refused before.
func (o *outcomes) startedAt(s subject, at time.Time) (changed bool) {
	i := slices.IndexFunc(o.starts, func(other start) bool { return other.subject == s })
	switch {
	case i < 0:
		o.starts = append(o.starts, start{s, at})
	case at.After(o.starts[i].at):
		o.starts[i].at = at
	default:
		return false
	}
	if len(o.starts) > maxStarts {
		oldest := 0
		for i := range o.starts {
			if o.starts[i].at.Before(o.starts[oldest].at) {
				oldest = i
			}
		}
		o.starts = slices.Delete(o.starts, oldest, oldest+1)
	}
	return o.drop(func(of subject, since time.Time) bool { return of == s && !since.After(at) })
}

// drop forgets refusals and rows by what they are of and when they began, and tells whether
// there were any.
func (o *outcomes) drop(gone func(of subject, since time.Time) bool) (dropped bool) {
	before := len(o.refusals) + len(o.rows)
	o.refusals = slices.DeleteFunc(o.refusals, func(r refusal) bool { return gone(r.subject, r.at) })
	maps.DeleteFunc(o.rows, func(s scope, r row) bool { return gone(s.subject, r.since) })
	return len(o.refusals)+len(o.rows) < before
}

// refusedAt notes a refusal if no pod has started since. Each pod counts once, at the
// latest time that it shows.
func (o *outcomes) refusedAt(r refusal, cfg config.Backoff) (changed bool) {
	if !r.at.After(o.folded) {
		return false // it counts already, or comes too late
	}
	for _, one := range o.starts {
		if one.subject == r.subject && !r.at.After(one.at) {
			return false
		}
	}
	i := slices.IndexFunc(o.refusals, func(other refusal) bool { return other.pod == r.pod && other.scope == r.scope })
	if i >= 0 {
		if !r.at.After(o.refusals[i].at) {
			return false
		}
		o.refusals = slices.Delete(o.refusals, i, i+1)
	}
	i, _ = slices.BinarySearchFunc(o.refusals, r, refusal.compare)
	o.refusals = slices.Insert(o.refusals, i, r)
	if len(o.refusals) > maxRefusals {
		o.fold(cfg)
	}
	return true
}

// fold makes rows of the oldest refusals: all of one time, so that folded divides them.
func (o *outcomes) fold(cfg config.Backoff) {
	o.folded = o.refusals[0].at
	later, _ := slices.BinarySearchFunc(o.refusals, o.folded, func(r refusal, at time.Time) int {
		return cmp.Or(r.at.Compare(at), -1)
	})
	if o.rows == nil {
		o.rows = map[scope]row{}
	}
	for _, r := range o.refusals[:later] {
		addTo(o.rows, r, cfg)
	}
	o.refusals = slices.Delete(o.refusals, 0, later)
	for len(o.rows) > maxRows {
		delete(o.rows, slices.MinFunc(slices.Collect(maps.Keys(o.rows)), o.compareRows))
	}
}

// compareRows sorts scopes by how little they matter: those of shapes first, then by their
// last refusals.
func (o *outcomes) compareRows(a, b scope) int {
	general := func(s scope) int {
		if s.shape == 0 {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(general(a), general(b)), o.rows[a].last.Compare(o.rows[b].last),
		cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.gpu, b.gpu), cmp.Compare(a.shape, b.shape))
}

// forgetBefore forgets what was before the node was created, and tells whether refusals
// were.
func (o *outcomes) forgetBefore(since time.Time) (changed bool) {
	o.since = since
	o.starts = slices.DeleteFunc(o.starts, func(s start) bool { return s.at.Before(since) })
	return o.drop(func(_ subject, at time.Time) bool { return at.Before(since) })
}

// backoffs returns the ends of the back-offs that follow, some of which may be over.
func (o *outcomes) backoffs(cfg config.Backoff) map[scope]time.Time {
	rows := maps.Clone(o.rows)
	if rows == nil {
		rows = map[scope]row{}
	}
	for _, r := range o.refusals {
		addTo(rows, r, cfg)
	}
	until := map[scope]time.Time{}
	for s, r := range rows {
		if !r.until.IsZero() {
			until[s] = r.until
		}
	}
	return until
}

// addTo adds a refusal to the row of its namespace and to everybody's.
func addTo(rows map[scope]row, r refusal, cfg config.Backoff) {
	for _, s := range [...]scope{r.scope, {"", r.subject}} {
		next := rows[s]
		next.add(r, s.namespace != "", cfg)
		rows[s] = next
	}
}

// row are refusals in a row.
type row struct {
	count int
	// since is when the first one was, and of which namespace; last is when the last one
	// was; several: another one was of another namespace.
	since, last time.Time
	first       string
	several     bool
	// pause and until are those of the latest back-off.
	pause time.Duration
	until time.Time
}

// add adds the next refusal, with which a back-off may begin: in everybody's row, only if
// there are some of another namespace. Each one soon after the last is twice as long.
func (r *row) add(next refusal, ofNamespace bool, cfg config.Backoff) {
	if r.count++; r.count == 1 {
		r.since, r.first = next.at, next.namespace
	}
	r.last = next.at
	r.several = r.several || next.namespace != r.first
	if r.count < cfg.Failures || !ofNamespace && !r.several || next.at.Before(r.until) {
		return
	}
	if r.pause > 0 && next.at.Before(r.until.Add(r.pause)) {
		r.pause = min(2*r.pause, cfg.Max.Duration)
	} else {
		r.pause = cfg.Initial.Duration
	}
	r.until = next.at.Add(r.pause)
}
