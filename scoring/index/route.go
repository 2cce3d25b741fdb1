package index

import (
	"math"
	"slices"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
)

// expected are the pods that are on their way to a node, by that node, as they came.
type expected map[string][]*podRecord

func (e expected) add(r *podRecord) { e[r.node] = append(e[r.node], r) }

func (e expected) remove(r *podRecord) {
	left := slices.DeleteFunc(e[r.node], func(other *podRecord) bool { return other == r })
	if len(left) == 0 {
		delete(e, r.node)
	} else {
		e[r.node] = left
	}
}

// route says where pods that are on their way will be put.
type route struct {
	usage  *usage
	pools  *pool.Pools
	ledger *ledger
	// allExamined tells whether the scheduler examines all nodes for every pod.
	allExamined func() bool
}

// expectedNode is where the scheduler will put a pending pod: on the first node
// that its terms list, by falling weight, with room. Usually that is the target.
// But when another replica decided at the same time the target may be taken
// twice; who is too much there goes on to the next listed node, and must be
// counted on it, or every later decision would be off by as much. When the others
// have taken all of them, it will push one of theirs further, so it counts on the
// next node in packing order.
func (r *route) expectedNode(listed []string, target string, l demand.Load) string {
	for _, name := range listed {
		if r.usage.hasRoom(name, l) {
			return name
		}
	}
	if next := r.nextWithRoom(listed, l); next != "" {
		return next
	}
	return target
}

// entriesForNext is how many nodes with enough GPUs are looked at for one that has
// enough of the rest too.
const entriesForNext = 16

// nextWithRoom returns the first node in packing order with room for a load of a pod
// with that list, empty if none is at hand.
func (r *route) nextWithRoom(listed []string, l demand.Load) (name string) {
	states := make([]*nodes.State, len(listed))
	for i, name := range listed {
		states[i] = r.usage.of(name)
	}
	p, visited := r.pools.SmallestWith(states, l), 0
	if p == nil {
		return ""
	}
	p.Ascend(func(e pool.Entry) bool {
		visited++
		if nodes.HasRoom(e.State, l.Requests) {
			name = e.State.Name
		}
		return name == "" && visited < entriesForNext
	})
	return name
}

// moveOn lets pods that are expected on a node go on along their lists, as long as there
// is too much on the node: others were bound to it meanwhile. Where the scheduler examines
// only a part of the nodes that happens all the time, and whoever stayed would not count
// anywhere.
func (r *route) moveOn(name string) {
	for range r.ledger.expected[name] {
		moved, next := r.nextToMove(name)
		if moved == nil {
			return
		}
		r.move(moved, next)
	}
}

// move expects a pod on another node.
func (r *route) move(moved *podRecord, node string) {
	r.ledger.charge(moved, ownership{owner: ownerTarget, node: node, until: moved.until})
}

// nextToMove returns which of the pods that are expected on a node goes on, and where to;
// nil if there is not too much on it, or no room elsewhere. It is the one that gets to the
// fullest node, of such nodes the first in order, and of several pods the last one. A pod
// whose list leaves out a node, since that was full when it was decided about, would open
// another one, while the scheduler fills the first with a pod whose list has it. Where the
// scheduler does not see all nodes it is just the last one.
func (r *route) nextToMove(name string) (best *podRecord, next string) {
	least, choose := int64(math.MaxInt64), r.allExamined()
	for _, one := range slices.Backward(r.ledger.expected[name]) {
		if !one.applied || !r.usage.isOverfull(name, *one.load) {
			continue
		}
		to := r.expectedNode(one.pending.listed, name, *one.load)
		room := r.usage.room(to, *one.load)
		if room > 0 && (room < least || room == least && one.prefers(to, next)) {
			best, next, least = one, to, room
		}
		if best != nil && !choose {
			break
		}
	}
	return best, next
}

// expectation is where a pod is expected, and by which list; the zero value says that it
// is not on its way.
type expectation struct {
	node   string
	listed []string
}

func (r *podRecord) expectation() expectation {
	if r.owner != ownerTarget || !r.applied || r.pending == nil {
		return expectation{}
	}
	return expectation{node: r.node, listed: r.pending.listed}
}

// moveUp lets a pod that is expected further down take the place of one that was expected
// on a node and is not there. When the scheduler put that one elsewhere, the node was full
// with pods that we have not seen there yet; and if it has room after all, they go there
// next. Else a new pod would be steered to that place, past the nodes that only seem full
// (see TestBurstWhateverTheOrder). The pods furthest down come first: their nodes are to
// stay empty. Where the scheduler examines only a part of the nodes, a node that it passed
// over may have room.
func (r *route) moveUp(gone expectation) {
	if gone.node == "" || !r.allExamined() {
		return
	}
	for _, from := range slices.Backward(gone.listed) {
		if from == gone.node {
			return
		}
		for _, one := range r.ledger.expected[from] {
			if one.applied && one.prefers(gone.node, from) && r.usage.hasRoom(gone.node, *one.load) {
				r.move(one, gone.node)
				return
			}
		}
	}
}
