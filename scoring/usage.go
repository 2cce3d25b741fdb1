package scoring

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/topology"
)

// charge is a load on a node.
type charge struct {
	node string
	load load
}

// usage is what is used on every node. It is kept by the node's name, so that a pod may
// come before its node.
type usage struct {
	// states: node name -> the node, if it exists, and what is used on it.
	states map[string]*nodeState
	// list holds the states of nodes that exist, position where in it each is.
	list     []*nodeState
	position map[string]int
	latest   latestStates
	// freeSlots are numbers below len(list)+len(freeSlots) that no node has.
	freeSlots []int
	// offered: how many nodes offer a resource.
	offered map[corev1.ResourceName]int
	// sequence is nil when nodes came, went or moved since it was taken.
	sequence *nodeOrder
	// changed is told of every change of a node or of what is used on it.
	changed func(old, next *nodeState)
	// negative are the nodes of which more was given back than was taken, since
	// somebody asked; negatives counts all.
	negative  []string
	negatives int
}

func newUsage(changed func(old, next *nodeState)) *usage {
	return &usage{
		states: map[string]*nodeState{}, position: map[string]int{}, offered: map[corev1.ResourceName]int{}, changed: changed,
	}
}

// of returns a node's state if the node exists, nil otherwise.
func (u *usage) of(name string) *nodeState {
	if s := u.states[name]; s != nil && s.node != nil {
		return s
	}
	return nil
}

// setNode adds or replaces a node, and returns the one that was there before.
func (u *usage) setNode(n *node) (old *node) {
	before := u.before(n.name)
	n = n.copy() // it may be one that the index had before the node was gone
	n.slot = u.slotFor(before.node)
	u.put(n.name, &nodeState{node: n, used: before.used})
	return before.node
}

// removeNode removes a node and returns it, nil if there is none. What its pods use
// stays until they go.
func (u *usage) removeNode(name string) (old *node) {
	s := u.of(name)
	if s == nil {
		return nil
	}
	u.put(name, &nodeState{used: s.used})
	return s.node
}

// apply adds (sign 1) or takes away (-1) a charge.
func (u *usage) apply(sign int64, c charge) {
	before := u.before(c.node)
	next := &nodeState{node: before.node, used: before.used.plus(sign, c.load)}
	if sign < 0 && next.used.isNegative() {
		u.negative = append(u.negative, c.node)
		u.negatives++
	}
	u.put(c.node, next)
}

// before returns the state of a node, an empty one if nothing is known of it.
func (u *usage) before(name string) *nodeState {
	if s := u.states[name]; s != nil {
		return s
	}
	return &nodeState{}
}

// put makes s the state of a node.
func (u *usage) put(name string, s *nodeState) {
	old := u.before(name)
	if old.node != s.node {
		u.offer(-1, old.node)
		u.offer(1, s.node)
		if !sameZone(old.node, s.node) {
			u.sequence = nil
		}
	}
	u.changed(old, s)
	u.enlist(name, s)
	switch {
	case s.node != nil:
		u.latest = u.latest.set(s.slot, s)
	case old.node != nil:
		u.latest = u.latest.set(old.slot, nil)
		u.freeSlots = append(u.freeSlots, old.slot)
	}
	if s.node == nil && s.used.pods == 0 {
		delete(u.states, name)
		return
	}
	u.states[name] = s
}

// enlist keeps list and position in step with which nodes exist.
func (u *usage) enlist(name string, s *nodeState) {
	at, listed := u.position[name]
	switch {
	case s.node != nil && listed:
		u.list[at] = s
	case s.node != nil:
		u.position[name] = len(u.list)
		u.list = append(u.list, s)
	case listed:
		last := len(u.list) - 1
		moved := u.list[last]
		u.list[at], u.position[moved.name] = moved, at
		u.list = u.list[:last]
		delete(u.position, name)
	}
}

// slotFor returns the slot of the node before the change, or a free one.
func (u *usage) slotFor(old *node) int {
	if old != nil {
		return old.slot
	}
	if last := len(u.freeSlots) - 1; last >= 0 {
		slot := u.freeSlots[last]
		u.freeSlots = u.freeSlots[:last]
		return slot
	}
	return len(u.list)
}

// offer counts what a node offers, if it exists.
func (u *usage) offer(sign int, n *node) {
	if n == nil {
		return
	}
	for _, a := range n.allocatable {
		if u.offered[a.name] += sign; u.offered[a.name] == 0 {
			delete(u.offered, a.name)
		}
	}
}

// asksForUnknown tells whether nodes offer the pod's GPUs, but none offers some other
// extended resource that it asks for as well.
func (u *usage) asksForUnknown(d *Demand) bool {
	if u.offered[d.GPUs[0].Name] == 0 {
		return false
	}
	for _, r := range d.requests {
		if u.offered[r.name] == 0 && strings.Contains(string(r.name), "/") {
			return true
		}
	}
	return false
}

// nodeOrder returns the scheduler's order of the nodes that exist. It stays as it is when
// nodes come or go later.
func (u *usage) nodeOrder() *nodeOrder {
	if u.sequence == nil {
		u.sequence = newNodeOrder(u.list)
	}
	return u.sequence
}

// sameZone tells whether a change of a node leaves it where it is in the scheduler's
// order of nodes.
func sameZone(a, b *node) bool {
	return a != nil && b != nil && topology.GetZoneKey(a.object) == topology.GetZoneKey(b.object)
}

// hasRoom tells whether a node exists and can take one more pod with such a load.
func (u *usage) hasRoom(name string, l load) bool {
	s := u.of(name)
	return s != nil && hasRoom(s, l.requests)
}

// canEverHold tells whether the node could take the pod if it were empty. Of a node that
// does not exist nothing else is known.
func (u *usage) canEverHold(name string, l load) bool {
	s := u.of(name)
	return s == nil || hasRoom(&nodeState{node: s.node}, l.requests)
}

// room is how many pods with such a load a node can still take.
func (u *usage) room(name string, l load) int64 {
	s := u.of(name)
	if s == nil {
		return 0
	}
	room := s.freePods()
	for _, r := range l.requests {
		if r.value > 0 {
			room = min(room, s.free(r.name)/r.value)
		}
	}
	return max(room, 0)
}

// isOverfull tells whether more is taken of a node than it has, of what the load asks
// for.
func (u *usage) isOverfull(name string, l load) bool {
	s := u.of(name)
	if s == nil {
		return false
	}
	for _, r := range l.requests {
		if s.free(r.name) < 0 {
			return true
		}
	}
	return s.freePods() < 0
}

// perEmptyNode is how many pods with such a load a node can take when it is empty, by its
// GPUs, at least 1.
func (u *usage) perEmptyNode(name string, l load) int {
	most := int64(1)
	if s := u.of(name); s != nil {
		for _, gpu := range l.occupants {
			most = max(most, s.allocatable.get(gpu.name)/l.requests.get(gpu.name))
		}
	}
	return int(most)
}
