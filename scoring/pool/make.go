package pool

import (
	"context"
	"runtime"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// Making a pool takes a few milliseconds in a large cluster, in which nobody else should
// have to wait. So it is made of the states that the nodes had at one moment, and then
// catches up with what has changed meanwhile. Whoever makes it has it alone until it is
// kept.

// nodesPerCheck is how many nodes are looked at between two looks at the context, at which
// the processor goes to whoever waits for it: some tens of microseconds' work.
const nodesPerCheck = 64

// Make makes the pool of a kind, of which the pod is an example, from the states of all
// nodes by slot, nil for a slot without a node. The states belong to the pool then. The
// error is that of the context.
func Make(ctx context.Context, kind Kind, pod *corev1.Pod, d *demand.Demand, by Ordering, states []*nodes.State) (*Pool, error) {
	p := &Pool{
		kind: kind, Ordering: by, states: states, members: make([]membership, len(states)),
		// What else the pod asks for is not what its kind has in common.
		filter: nodes.NewFilter(nodes.ConstraintsOf(pod), &demand.Demand{GPUs: d.GPUs[:1]}),
	}
	entries, places := make([]Entry, 0, len(states)), make([]Place, 0, len(states))
	for slot, s := range states {
		if slot%nodesPerCheck == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			runtime.Gosched()
		}
		if s != nil && p.enter(s)&eligible != 0 && p.hasGPUs(s) {
			at := p.spotOf(s)
			entries, places = append(entries, at.Entry), append(places, at.Place)
		}
	}
	p.entries, p.scattered = listOf(entries, Entry.Compare), listOf(places, Place.compare)
	return p, nil
}

// MakeTrees turns the lists of a pool that is to be kept, and has no readers yet, into trees.
func (p *Pool) MakeTrees() {
	p.entries = p.entries.asTree(func(a, b Entry) bool { return a.Compare(b) < 0 })
	p.scattered = p.scattered.asTree(func(a, b Place) bool { return a.compare(b) < 0 })
}

// Behind is how many nodes have another state than the one that the pool was made of.
func (p *Pool) Behind(states []*nodes.State) (changed int) {
	for slot := range max(len(states), len(p.states)) {
		if stateIn(states, slot) != stateIn(p.states, slot) {
			changed++
		}
	}
	return changed
}

// CatchUp makes the pool, which does not follow events, what Make would make of these states. The
// states belong to the pool then.
func (p *Pool) CatchUp(states []*nodes.State) {
	var changed []int
	for slot := range max(len(states), len(p.states)) {
		old, next := stateIn(p.states, slot), stateIn(states, slot)
		if old == next {
			continue
		}
		changed = append(changed, slot)
		if old.Node != next.Node {
			p.leave(old)
		}
	}
	// A node that was removed and came again may have another slot. Its old state is gone
	// by now: both have the same place in the orders.
	for _, slot := range changed {
		if old, next := stateIn(p.states, slot), stateIn(states, slot); old.Node != next.Node {
			p.join(next)
		} else {
			p.update(old, next)
		}
	}
	p.states = states
}

// none is the state of a slot without a node.
var none = &nodes.State{}

func stateIn(states []*nodes.State, slot int) *nodes.State {
	if slot >= len(states) || states[slot] == nil {
		return none
	}
	return states[slot]
}
