package scoring

import (
	"strings"

	"k8s.io/component-helpers/node/topology"
)

// charge moves a record's load to where next says. Call under lock.
func (ix *Index) charge(r *podRecord, next ownership) {
	if r.applied {
		ix.apply(-1, charge{node: r.node, load: *r.load})
		ix.countCompanions(-1, *r.load)
	}
	ix.unexpect(r)
	r.ownership = next
	ix.expect(r)
	ix.indexTarget(r)
	r.applied = next.owner > ownerTarget || next.owner == ownerTarget && ix.enabled[r.namespace]
	if r.applied {
		ix.apply(1, charge{node: r.node, load: *r.load})
		ix.countCompanions(1, *r.load)
	}
}

// indexTarget keeps targets in step with a record's owner. Call under lock.
func (ix *Index) indexTarget(r *podRecord) {
	records := ix.targets[r.namespace]
	if r.owner != ownerTarget {
		delete(records, r)
		if len(records) == 0 {
			delete(ix.targets, r.namespace)
		}
		return
	}
	if records == nil {
		records = map[*podRecord]struct{}{}
		ix.targets[r.namespace] = records
	}
	records[r] = struct{}{}
}

// apply adds (sign 1) or takes away (-1) a charge. Call under lock.
func (ix *Index) apply(sign int64, c charge) {
	old := ix.states[c.node]
	if old == nil {
		old = &nodeState{}
	}
	ix.put(c.node, &nodeState{node: old.node, used: old.used.plus(sign, c.load)})
}

// put makes s the state of a node. Call under lock.
func (ix *Index) put(name string, s *nodeState) {
	old := ix.states[name]
	if old == nil {
		old = &nodeState{}
	}
	if old.node != s.node {
		ix.offer(-1, old.node)
		ix.offer(1, s.node)
		if !sameZone(old.node, s.node) {
			ix.nodeOrder = nil
		}
	}
	for _, p := range ix.pools {
		p.update(old, s)
	}
	ix.list(name, s)
	switch {
	case s.node != nil:
		ix.latest = ix.latest.set(s.slot, s)
	case old.node != nil:
		ix.latest = ix.latest.set(old.slot, nil)
		ix.freeSlots = append(ix.freeSlots, old.slot)
	}
	if s.node == nil && s.used.pods == 0 {
		delete(ix.states, name)
		return
	}
	ix.states[name] = s
}

// list keeps order and position in step with which nodes exist. Call under lock.
func (ix *Index) list(name string, s *nodeState) {
	at, listed := ix.position[name]
	switch {
	case s.node != nil && listed:
		ix.order[at] = s
	case s.node != nil:
		ix.position[name] = len(ix.order)
		ix.order = append(ix.order, s)
	case listed:
		last := len(ix.order) - 1
		moved := ix.order[last]
		ix.order[at], ix.position[moved.name] = moved, at
		ix.order = ix.order[:last]
		delete(ix.position, name)
	}
}

// slotFor returns the slot of the node before the change, or a free one. Call
// under lock.
func (ix *Index) slotFor(old *node) int {
	if old != nil {
		return old.slot
	}
	if last := len(ix.freeSlots) - 1; last >= 0 {
		slot := ix.freeSlots[last]
		ix.freeSlots = ix.freeSlots[:last]
		return slot
	}
	return len(ix.order)
}

// offer counts what a node offers, if it exists. Call under lock.
func (ix *Index) offer(sign int, n *node) {
	if n == nil {
		return
	}
	for _, a := range n.allocatable {
		if ix.offered[a.name] += sign; ix.offered[a.name] == 0 {
			delete(ix.offered, a.name)
		}
	}
}

// asksForUnknown tells whether nodes offer the pod's GPUs, but none offers some
// other extended resource that it asks for as well. Call under lock.
func (ix *Index) asksForUnknown(d *Demand) bool {
	if ix.offered[d.GPUs[0].Name] == 0 {
		return false
	}
	for _, r := range d.requests {
		if ix.offered[r.name] == 0 && strings.Contains(string(r.name), "/") {
			return true
		}
	}
	return false
}

// sameZone tells whether a change of a node leaves it where it is in the
// scheduler's node order.
func sameZone(a, b *node) bool {
	return a != nil && b != nil && topology.GetZoneKey(a.object) == topology.GetZoneKey(b.object)
}
