package index

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
)

// A node whose device plugin is broken refuses every GPU pod within seconds. The
// pods fail and free their GPUs, the node looks as good as before, and whoever
// packs sends the next ones there: a black hole. So a node that refused several
// GPU pods lately is no candidate for a while, longer each time it happens again.

// backoffs are the nodes that refused GPU pods.
type backoffs struct {
	cfg config.Backoff
	// pending are the GPU pods that were seen without a node and have not failed: the
	// scheduler chooses their node. A pod whose author names one says nothing about
	// it.
	pending map[types.UID]struct{}
	nodes   map[string]*refusals
	// until: node -> end of its back-off. It is never changed but replaced, since
	// decisions under way read it; nearly always it is empty.
	until map[string]time.Time
}

// refusals are those of one node.
type refusals struct {
	// recent are when it refused, within the window.
	recent []time.Time
	// pause and until are those of the latest back-off.
	pause time.Duration
	until time.Time
}

func newBackoffs(cfg config.Backoff) *backoffs {
	return &backoffs{cfg: cfg, pending: map[types.UID]struct{}{}, nodes: map[string]*refusals{}}
}

// note counts a pod that its node refused after the scheduler put it there. Each counts
// once, and only if it was seen before it had a node.
func (b *backoffs) note(pod *reduced.Pod, gpus config.Resources, now time.Time) {
	if b.cfg.Failures == 0 {
		return
	}
	_, known := b.pending[pod.UID]
	if pod.NodeName == "" {
		if !known && pod.UsesGPUs(gpus) {
			b.pending[pod.UID] = struct{}{}
		}
		return
	}
	if !known || !pod.Failed {
		return
	}
	delete(b.pending, pod.UID)
	if pod.Refused {
		b.refuse(pod.NodeName, now)
	}
}

// refuse notes one refusal, with which a back-off may begin. A node that earns
// another one soon after the last gets twice as long.
func (b *backoffs) refuse(node string, now time.Time) {
	r := b.nodes[node]
	if r == nil {
		r = &refusals{}
		b.nodes[node] = r
	}
	r.recent = slices.DeleteFunc(append(r.recent, now), func(at time.Time) bool { return now.Sub(at) >= b.cfg.Window.Duration })
	if len(r.recent) < b.cfg.Failures || now.Before(r.until) {
		return
	}
	if now.Before(r.until.Add(r.pause)) {
		r.pause = min(2*r.pause, b.cfg.Max.Duration)
	} else {
		r.pause = b.cfg.Initial.Duration
	}
	r.until, r.recent = now.Add(r.pause), nil
	b.set(node, r.until)
	b.prune(now)
}

// set replaces until with one that has the node's end.
func (b *backoffs) set(node string, until time.Time) {
	next := maps.Clone(b.until)
	if next == nil {
		next = map[string]time.Time{}
	}
	next[node] = until
	b.until = next
}

// prune forgets nodes that have behaved for long enough.
func (b *backoffs) prune(now time.Time) {
	for node, r := range b.nodes {
		over := now.After(r.until.Add(r.pause))
		if over && (len(r.recent) == 0 || now.Sub(r.recent[len(r.recent)-1]) >= b.cfg.Window.Duration) {
			b.forget(node)
		}
	}
}

// forget drops what is known of a node, so that a new one under its name begins
// afresh.
func (b *backoffs) forget(node string) {
	delete(b.nodes, node)
	if _, ok := b.until[node]; ok {
		next := maps.Clone(b.until)
		delete(next, node)
		b.until = next
	}
}

// holds tells whether a node is in back-off.
func (b *backoffs) holds(node string, now time.Time) bool { return isHeld(b.until, node, now) }

// isHeld tells whether a node's back-off, by these ends, is not over.
func isHeld(until map[string]time.Time, node string, now time.Time) bool {
	end, ok := until[node]
	return ok && now.Before(end)
}

// count is how many nodes are in back-off.
func (b *backoffs) count(now time.Time) int {
	count := 0
	for node := range b.until {
		if b.holds(node, now) {
			count++
		}
	}
	return count
}
