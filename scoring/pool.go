package scoring

import (
	"cmp"

	"github.com/google/btree"
	corev1 "k8s.io/api/core/v1"
)

// podKind is what the pods of a pool have in common.
type podKind struct {
	gpu   corev1.ResourceName
	count int64
	// constraints is the signature of node selector, required affinity and
	// tolerations.
	constraints string
}

// treeDegree of a pool's tree: nodes of 7 to 15 entries, which a change after a
// view copies, four deep at 15,000 entries.
const treeDegree = 8

// pool is the nodes for one kind of pods.
type pool struct {
	kind   podKind
	filter podFilter
	key    keyFunc
	tree   *btree.BTreeG[entry]
	// scattered holds the same nodes in an order that has nothing to do with the
	// scheduler's.
	scattered *btree.BTreeG[place]
	// members says what each node is to the pool, by the node's slot.
	members []membership
	stats   poolStats
	// shared and sharedScattered are the trees as readers have them, nil when they
	// have changed since.
	shared          *btree.BTreeG[entry]
	sharedScattered *btree.BTreeG[place]
	used            uint64 // the count of decisions when it was last used
}

// poolStats are counts over all nodes with the GPU, with or without room.
type poolStats struct {
	// matching is how many match node selector and required affinity, in whatever
	// state they are.
	matching int
	// withoutHostname is how many of those that may take pods lack the hostname label.
	withoutHostname int
	// mostSoftTaints is the most PreferNoSchedule taints, not tolerated by the pods,
	// that one of them had.
	mostSoftTaints int64
	// invalid: the required affinity does not parse.
	invalid bool
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

// entry is an eligible node with enough free GPUs.
type entry struct {
	key packingKey
	// hash is the node's; here it can be compared without a look at the node.
	hash  uint64
	state *nodeState
}

// compare orders entries of different nodes, and those of one node by their keys.
func (e entry) compare(o entry) int {
	if c := e.key.compare(o.key); c != 0 {
		return c
	}
	if e.hash != o.hash {
		return cmp.Compare(e.hash, o.hash)
	}
	return compareNodes(e.state.node, o.state.node)
}

func newPool(kind podKind, filter podFilter, key keyFunc) *pool {
	return &pool{
		kind: kind, filter: filter, key: key,
		tree:      btree.NewG(treeDegree, func(a, b entry) bool { return a.compare(b) < 0 }),
		scattered: btree.NewG(treeDegree, func(a, b place) bool { return a.compare(b) < 0 }),
	}
}

// update moves a node from its old to its new state.
func (p *pool) update(old, next *nodeState) {
	if old.node != next.node {
		p.leave(old)
		p.join(next)
	} else if next.node != nil && p.member(next.node)&eligible != 0 {
		p.move(old, next)
	}
}

func (p *pool) member(n *node) membership {
	if n.slot < len(p.members) {
		return p.members[n.slot]
	}
	return 0
}

// join finds out what a node is to the pool.
func (p *pool) join(s *nodeState) {
	if s.node == nil || s.allocatable.get(p.kind.gpu) == 0 {
		return
	}
	var m membership
	ok, err := p.filter.matches(s)
	p.stats.invalid = p.stats.invalid || err != nil
	if ok {
		m |= matches
	}
	if reason, err := p.filter.checkNode(s); reason == NodeFeasible && err == nil {
		m |= eligible
		if !s.hasHostname() {
			m |= noHostname
		}
		p.stats.mostSoftTaints = max(p.stats.mostSoftTaints, p.filter.softTaints(s.node))
	}
	for s.slot >= len(p.members) {
		p.members = append(p.members, 0)
	}
	p.members[s.slot] = m
	p.stats.count(m, 1)
	if m&eligible != 0 {
		p.insert(s)
	}
}

func (p *pool) leave(s *nodeState) {
	if s.node == nil {
		return
	}
	m := p.member(s.node)
	if m == 0 {
		return
	}
	p.stats.count(m, -1)
	if m&eligible != 0 {
		p.remove(s)
	}
	p.members[s.slot] = 0
}

func (c *poolStats) count(m membership, sign int) {
	if m&matches != 0 {
		c.matching += sign
	}
	if m&noHostname != 0 {
		c.withoutHostname += sign
	}
}

func (p *pool) insert(s *nodeState) {
	if p.hasGPUs(s) {
		p.shared, p.sharedScattered = nil, nil
		at := p.spotOf(s)
		p.tree.ReplaceOrInsert(at.entry)
		p.scattered.ReplaceOrInsert(at.place)
	}
}

func (p *pool) remove(s *nodeState) {
	if p.hasGPUs(s) {
		p.shared, p.sharedScattered = nil, nil
		at := p.spotOf(s)
		p.tree.Delete(at.entry)
		p.scattered.Delete(at.place)
	}
}

// move is remove and insert, of a node that is eligible before and after. What stays
// where it is in a tree is at most replaced, which copies half as much of the tree.
func (p *pool) move(old, next *nodeState) {
	if !p.hasGPUs(old) || !p.hasGPUs(next) {
		p.remove(old)
		p.insert(next)
		return
	}
	p.shared = nil
	from, to := p.spotOf(old), p.spotOf(next)
	if from.entry.compare(to.entry) != 0 {
		p.tree.Delete(from.entry)
	}
	p.tree.ReplaceOrInsert(to.entry)
	if from.place != to.place {
		p.sharedScattered = nil
		p.scattered.Delete(from.place)
		p.scattered.ReplaceOrInsert(to.place)
	}
}

func (p *pool) hasGPUs(s *nodeState) bool {
	return s.allocatable.get(p.kind.gpu)-s.used.requests.get(p.kind.gpu) >= p.kind.count
}

// spot is where a node is in the two trees of a pool.
type spot struct {
	entry
	place
}

func (p *pool) spotOf(s *nodeState) spot {
	packing := packingOf(s, p.kind.gpu)
	return spot{
		entry: entry{key: p.key(packing), hash: s.hash, state: s},
		place: place{class: classOf(packing), hash: s.hash, slot: int32(s.slot), node: s.node},
	}
}

// view returns the pool for readers. It stays as it is whatever happens next.
func (p *pool) view() poolView {
	if p.shared == nil {
		p.shared = p.tree.Clone()
	}
	if p.sharedScattered == nil {
		p.sharedScattered = p.scattered.Clone()
	}
	return poolView{tree: p.shared, scattered: p.sharedScattered, poolStats: p.stats}
}

// poolView is a pool at one moment.
type poolView struct {
	tree      *btree.BTreeG[entry]
	scattered *btree.BTreeG[place]
	poolStats
}
