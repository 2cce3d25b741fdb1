package index

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/topology"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

// charge is a load on a node.
type charge struct {
	Node string
	load demand.Load
}

// usage is what is used on every node. It is kept by the node's name, so that a pod may
// come before its node.
type usage struct {
	// states: node name -> the node, if it exists, and what is used on it.
	states map[string]*nodes.State
	// list holds the states of nodes that exist, position where in it each is.
	list     []*nodes.State
	position map[string]int
	latest   pool.Latest
	// freeSlots are numbers below len(list)+len(freeSlots) that no node has.
	freeSlots []int
	// offered: how many nodes offer a resource.
	offered map[corev1.ResourceName]int
	// sequence is nil when nodes came, went or moved since it was taken.
	sequence *scheduler.Order
	// changed is told of every change of a node or of what is used on it.
	changed func(old, next *nodes.State)
	// negative are the nodes of which more was given back than was taken, since
	// somebody asked; negatives counts all.
	negative  []string
	negatives int
}

func newUsage(changed func(old, next *nodes.State)) *usage {
	return &usage{
		states: map[string]*nodes.State{}, position: map[string]int{}, offered: map[corev1.ResourceName]int{}, changed: changed,
	}
}

// of returns a node's state if the node exists, nil otherwise.
func (u *usage) of(name string) *nodes.State {
	if s := u.states[name]; s != nil && s.Node != nil {
		return s
	}
	return nil
}

// setNode adds or replaces a node, and returns the one that was there before.
func (u *usage) setNode(n *nodes.Node) (old *nodes.Node) {
	before := u.before(n.Name)
	n = n.Copy() // it may be one that the index had before the node was gone
	n.Slot = u.slotFor(before.Node)
	u.put(n.Name, &nodes.State{Node: n, Used: before.Used})
	return before.Node
}

// removeNode removes a node and returns it, nil if there is none. What its pods use
// stays until they go.
func (u *usage) removeNode(name string) (old *nodes.Node) {
	s := u.of(name)
	if s == nil {
		return nil
	}
	u.put(name, &nodes.State{Used: s.Used})
	return s.Node
}

// apply adds (sign 1) or takes away (-1) a charge.
func (u *usage) apply(sign int64, c charge) {
	before := u.before(c.Node)
	next := &nodes.State{Node: before.Node, Used: before.Used.Plus(sign, c.load)}
	if sign < 0 && next.Used.IsNegative() {
		u.negative = append(u.negative, c.Node)
		u.negatives++
	}
	u.put(c.Node, next)
}

// maxNamesOnNode is of how many resources the use on one node is kept. A node offers some
// tens at most, and only pods whose authors bind them to it themselves ask for others.
const maxNamesOnNode = 256

// countable returns the part of a load that counts on a node: all of it, unless there would
// be the use of too many resources; then those that the node offers or every node may.
func (u *usage) countable(name string, l *demand.Load, gpus config.Resources) *demand.Load {
	s := u.states[name]
	if s == nil || len(s.Used.Requests)+len(l.Requests) <= maxNamesOnNode {
		return l
	}
	part := l.Only(func(resource corev1.ResourceName) bool {
		return demand.CountsEverywhere(resource, gpus) || s.Node != nil && s.Allocatable.Get(resource) > 0
	})
	return &part
}

// before returns the state of a node, an empty one if nothing is known of it.
func (u *usage) before(name string) *nodes.State {
	if s := u.states[name]; s != nil {
		return s
	}
	return &nodes.State{}
}

// put makes s the state of a node.
func (u *usage) put(name string, s *nodes.State) {
	old := u.before(name)
	if old.Node != s.Node {
		u.offer(-1, old.Node)
		u.offer(1, s.Node)
		if !sameZone(old.Node, s.Node) {
			u.sequence = nil
		}
	}
	u.changed(old, s)
	u.enlist(name, s)
	switch {
	case s.Node != nil:
		u.latest = u.latest.Set(s.Slot, s)
	case old.Node != nil:
		u.latest = u.latest.Set(old.Slot, nil)
		u.freeSlots = append(u.freeSlots, old.Slot)
	}
	if s.Node == nil && s.Used.Pods == 0 {
		delete(u.states, name)
		return
	}
	u.states[name] = s
}

// enlist keeps list and position in step with which nodes exist.
func (u *usage) enlist(name string, s *nodes.State) {
	at, listed := u.position[name]
	switch {
	case s.Node != nil && listed:
		u.list[at] = s
	case s.Node != nil:
		u.position[name] = len(u.list)
		u.list = append(u.list, s)
	case listed:
		last := len(u.list) - 1
		moved := u.list[last]
		u.list[at], u.position[moved.Name] = moved, at
		u.list = u.list[:last]
		delete(u.position, name)
	}
}

// slotFor returns the slot of the node before the change, or a free one.
func (u *usage) slotFor(old *nodes.Node) int {
	if old != nil {
		return old.Slot
	}
	if last := len(u.freeSlots) - 1; last >= 0 {
		slot := u.freeSlots[last]
		u.freeSlots = u.freeSlots[:last]
		return slot
	}
	return len(u.list)
}

// offer counts what a node offers, if it exists.
func (u *usage) offer(sign int, n *nodes.Node) {
	if n == nil {
		return
	}
	for _, a := range n.Allocatable {
		if u.offered[a.Name] += sign; u.offered[a.Name] == 0 {
			delete(u.offered, a.Name)
		}
	}
}

// asksForUnknown tells whether nodes offer the pod's GPUs, but none offers some other
// extended resource that it asks for as well.
func (u *usage) asksForUnknown(d *demand.Demand) bool {
	if u.offered[d.GPUs[0].Name] == 0 {
		return false
	}
	for _, r := range d.Requests {
		if u.offered[r.Name] == 0 && strings.Contains(string(r.Name), "/") {
			return true
		}
	}
	return false
}

// nodeOrder returns the scheduler's order of the nodes that exist. It stays as it is when
// nodes come or go later.
func (u *usage) nodeOrder() *scheduler.Order {
	if u.sequence == nil {
		u.sequence = scheduler.NewOrder(u.list)
	}
	return u.sequence
}

// sameZone tells whether a change of a node leaves it where it is in the scheduler's
// order of nodes.
func sameZone(a, b *nodes.Node) bool {
	return a != nil && b != nil && topology.GetZoneKey(a.Object) == topology.GetZoneKey(b.Object)
}

// hasRoom tells whether a node exists and can take one more pod with such a load.
func (u *usage) hasRoom(name string, l demand.Load) bool {
	s := u.of(name)
	return s != nil && nodes.HasRoom(s, l.Requests)
}

// canEverHold tells whether the node could take the pod if it were empty. Of a node that
// does not exist nothing else is known.
func (u *usage) canEverHold(name string, l demand.Load) bool {
	s := u.of(name)
	return s == nil || nodes.HasRoom(&nodes.State{Node: s.Node}, l.Requests)
}

// room is how many pods with such a load a node can still take.
func (u *usage) room(name string, l demand.Load) int64 {
	s := u.of(name)
	if s == nil {
		return 0
	}
	room := s.FreePods()
	for _, r := range l.Requests {
		if r.Value > 0 {
			room = min(room, s.Free(r.Name)/r.Value)
		}
	}
	return max(room, 0)
}

// isOverfull tells whether more is taken of a node than it has, of what the load asks
// for.
func (u *usage) isOverfull(name string, l demand.Load) bool {
	s := u.of(name)
	if s == nil {
		return false
	}
	for _, r := range l.Requests {
		if s.Free(r.Name) < 0 {
			return true
		}
	}
	return s.FreePods() < 0
}

// perEmptyNode is how many pods with such a load a node can take when it is empty, by its
// GPUs, at least 1.
func (u *usage) perEmptyNode(name string, l demand.Load) int {
	most := int64(1)
	if s := u.of(name); s != nil {
		for _, gpu := range l.Occupants {
			most = max(most, s.Allocatable.Get(gpu.Name)/l.Requests.Get(gpu.Name))
		}
	}
	return int(most)
}
