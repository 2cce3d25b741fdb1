package pool

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// Kind is what the pods of a pool have in common.
type Kind struct {
	gpu   corev1.ResourceName
	count int64
	// constraints is the signature of node selector, required affinity and
	// tolerations.
	constraints string
}

// Pool is the nodes for one kind of pods.
type Pool struct {
	kind   Kind
	filter nodes.Filter
	// Ordering is that of entries; scattered holds the same nodes in an order that has
	// nothing to do with the scheduler's.
	Ordering
	entries   Sorted[Entry]
	scattered Sorted[Place]
	// members says what each node is to the pool, by the node's slot.
	members []membership
	stats   poolStats
	// shared and sharedScattered are what readers have, zero when it has changed since.
	shared          Sorted[Entry]
	sharedScattered Sorted[Place]
	// used is the count of decisions when the pool was last used, usedAt the time, and
	// namespace that of the pod.
	used      uint64
	usedAt    time.Time
	namespace string
	// states are those that the pool was made of, by slot, as long as it does not follow
	// events: it is not kept, or rests.
	states []*nodes.State
}

// poolStats are counts over all nodes with the GPU, with or without room.
type poolStats struct {
	// Matching is how many match node selector and required affinity, in whatever
	// state they are.
	Matching int
	// WithoutHostname is how many of those that may take pods lack the hostname label.
	WithoutHostname int
	// MostSoftTaints is the most PreferNoSchedule taints, not tolerated by the pods,
	// that one of them had.
	MostSoftTaints int64
	// Invalid: the required affinity does not parse.
	Invalid bool
}

// membership is what a node is to a pool.
type membership uint8

const (
	// matches: node selector and required affinity allow the node.
	matches membership = 1 << iota
	// eligible: the node may take the pods when it has room.
	eligible
	// noHostname: it is eligible, but lacks the hostname label.
	noHostname
)

// Entry is an eligible node with enough free GPUs.
type Entry struct {
	Key nodes.Key
	// Hash is the node's; here it can be compared without a look at the node.
	Hash  uint64
	State *nodes.State
}

// Compare orders entries of different nodes, and those of one node by their keys.
func (e Entry) Compare(o Entry) int {
	if c := e.Key.Compare(o.Key); c != 0 {
		return c
	}
	if e.Hash != o.Hash {
		return cmp.Compare(e.Hash, o.Hash)
	}
	return nodes.CompareNodes(e.State.Node, o.State.Node)
}

// update moves a node from its old to its new state.
func (p *Pool) update(old, next *nodes.State) {
	if old.Node != next.Node {
		p.leave(old)
		p.join(next)
	} else if next.Node != nil && p.member(next.Node)&eligible != 0 {
		p.move(old, next)
	}
}

func (p *Pool) member(n *nodes.Node) membership {
	if n.Slot < len(p.members) {
		return p.members[n.Slot]
	}
	return 0
}

// join takes a node into the pool.
func (p *Pool) join(s *nodes.State) {
	if p.enter(s)&eligible != 0 {
		p.insert(s)
	}
}

// enter finds out what a node is to the pool, and notes it.
func (p *Pool) enter(s *nodes.State) (m membership) {
	if s.Node == nil || s.Allocatable.Get(p.kind.gpu) == 0 {
		return 0
	}
	ok, err := p.filter.Matches(s)
	p.stats.Invalid = p.stats.Invalid || err != nil
	if ok {
		m |= matches
	}
	if ok && p.filter.AcceptsMatching(s) {
		m |= eligible
		if !s.HasHostname() {
			m |= noHostname
		}
		p.stats.MostSoftTaints = max(p.stats.MostSoftTaints, p.filter.SoftTaints(s.Node))
	}
	for s.Slot >= len(p.members) {
		p.members = append(p.members, 0)
	}
	p.members[s.Slot] = m
	p.stats.count(m, 1)
	return m
}

func (p *Pool) leave(s *nodes.State) {
	if s.Node == nil {
		return
	}
	m := p.member(s.Node)
	if m == 0 {
		return
	}
	p.stats.count(m, -1)
	if m&eligible != 0 {
		p.remove(s)
	}
	p.members[s.Slot] = 0
}

func (c *poolStats) count(m membership, sign int) {
	if m&matches != 0 {
		c.Matching += sign
	}
	if m&noHostname != 0 {
		c.WithoutHostname += sign
	}
}

func (p *Pool) insert(s *nodes.State) {
	if p.hasGPUs(s) {
		p.shared, p.sharedScattered = Sorted[Entry]{}, Sorted[Place]{}
		at := p.spotOf(s)
		p.entries.put(at.Entry)
		p.scattered.put(at.Place)
	}
}

func (p *Pool) remove(s *nodes.State) {
	if p.hasGPUs(s) {
		p.shared, p.sharedScattered = Sorted[Entry]{}, Sorted[Place]{}
		at := p.spotOf(s)
		p.entries.take(at.Entry)
		p.scattered.take(at.Place)
	}
}

// move is remove and insert, of a node that is eligible before and after. What stays
// where it is in a tree is at most replaced, which copies half as much of the tree.
func (p *Pool) move(old, next *nodes.State) {
	if !p.hasGPUs(old) || !p.hasGPUs(next) {
		p.remove(old)
		p.insert(next)
		return
	}
	p.shared = Sorted[Entry]{}
	from, to := p.spotOf(old), p.spotOf(next)
	if from.Entry.Compare(to.Entry) != 0 {
		p.entries.take(from.Entry)
	}
	p.entries.put(to.Entry)
	if from.Place != to.Place {
		p.sharedScattered = Sorted[Place]{}
		p.scattered.take(from.Place)
		p.scattered.put(to.Place)
	}
}

func (p *Pool) hasGPUs(s *nodes.State) bool {
	return s.Allocatable.Get(p.kind.gpu)-s.Used.Requests.Get(p.kind.gpu) >= p.kind.count
}

// spot is where a node is in the two trees of a pool.
type spot struct {
	Entry
	Place
}

func (p *Pool) spotOf(s *nodes.State) spot {
	packing := nodes.PackingOf(s, p.kind.gpu)
	return spot{
		Entry: Entry{Key: p.Key(packing), Hash: s.Hash, State: s},
		Place: Place{Class: classOf(packing), hash: s.Hash, Slot: int32(s.Slot), node: s.Node},
	}
}

// View returns the pool for readers. It stays as it is whatever happens next if the pool
// is kept, and until the pool catches up if not.
func (p *Pool) View() View {
	if p.shared == (Sorted[Entry]{}) {
		p.shared = p.entries.forReaders()
	}
	if p.sharedScattered == (Sorted[Place]{}) {
		p.sharedScattered = p.scattered.forReaders()
	}
	return View{Entries: p.shared, Scattered: p.sharedScattered, poolStats: p.stats}
}

// Ascend calls visit for the nodes in packing order, until it returns false. It must not
// change the pool.
func (p *Pool) Ascend(visit func(Entry) bool) { p.entries.Ascend(visit) }

// View is a pool at one moment: its nodes in packing order, and the same ones scattered.
type View struct {
	Entries   Sorted[Entry]
	Scattered Sorted[Place]
	poolStats
}
