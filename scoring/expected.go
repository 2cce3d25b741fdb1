package scoring

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// expectedNode is where the scheduler will put a pending pod: on the first node
// that its terms list, by falling weight, with room. Usually that is the target.
// But when another replica decided at the same time the target may be taken
// twice; who is too much there goes on to the next listed node, and must be
// counted on it, or every later decision would be off by as much. When the others
// have taken all of them, it will push one of theirs further, so it counts on the
// next node in packing order. Call under lock.
func (ix *Index) expectedNode(listed []string, target string, l load) string {
	for _, name := range listed {
		if ix.hasRoomOn(name, l) {
			return name
		}
	}
	if next := ix.nextWithRoom(listed, l); next != "" {
		return next
	}
	return target
}

// entriesForNext is how many nodes with enough GPUs are looked at for one that has
// enough of the rest too.
const entriesForNext = 16

// nextWithRoom returns the first node in packing order with room for a load of a pod
// with that list, empty if none is at hand. Call under lock.
func (ix *Index) nextWithRoom(listed []string, l load) (name string) {
	p, visited := ix.poolWith(listed, l), 0
	if p == nil {
		return ""
	}
	p.tree.Ascend(func(e entry) bool {
		visited++
		if hasRoom(e.state, l.requests) {
			name = e.state.name
		}
		return name == "" && visited < entriesForNext
	})
	return name
}

// poolWith returns the smallest pool of pods that ask for as many GPUs as the load
// and may go to all these nodes, nil if there is none. Call under lock.
func (ix *Index) poolWith(nodes []string, l load) (smallest *pool) {
	for kind, p := range ix.pools {
		if l.occupants.get(kind.gpu) > 0 && l.requests.get(kind.gpu) == kind.count && ix.allEligible(p, nodes) &&
			(smallest == nil || p.stats.matching < smallest.stats.matching ||
				p.stats.matching == smallest.stats.matching && p.used > smallest.used) {
			smallest = p
		}
	}
	return smallest
}

func (ix *Index) allEligible(p *pool, nodes []string) bool {
	for _, name := range nodes {
		if s := ix.states[name]; s == nil || s.node == nil || p.member(s.node)&eligible == 0 {
			return false
		}
	}
	return true
}

// expect notes that a pod is expected on a node. Call under lock.
func (ix *Index) expect(r *podRecord) {
	if r.owner == ownerTarget {
		ix.expected[r.node] = append(ix.expected[r.node], r)
	}
}

// unexpect ends what expect noted. Call under lock.
func (ix *Index) unexpect(r *podRecord) {
	if r.owner != ownerTarget {
		return
	}
	left := slices.DeleteFunc(ix.expected[r.node], func(other *podRecord) bool { return other == r })
	if len(left) == 0 {
		delete(ix.expected, r.node)
	} else {
		ix.expected[r.node] = left
	}
}

// allExamined tells whether the scheduler examines all nodes for every pod. Call under
// lock.
func (ix *Index) allExamined() bool {
	return examinedNodes(&ix.cfg.Scheduler, len(ix.order)) == len(ix.order)
}

// moveOn lets pods that are expected on a node go on along their lists, as long as there
// is too much on the node: others were bound to it meanwhile. Where the scheduler examines
// only a part of the nodes that happens all the time, and whoever stayed would not count
// anywhere. Call under lock.
func (ix *Index) moveOn(name string) {
	for range ix.expected[name] {
		r, next := ix.nextToMove(name)
		if r == nil {
			return
		}
		ix.charge(r, ownership{owner: ownerTarget, node: next, until: r.until})
	}
}

// nextToMove returns which of the pods that are expected on a node goes on, and where to;
// nil if there is not too much on it, or no room elsewhere. It is the one that gets to the
// fullest node, of such nodes the first in order, and of several pods the last one. A pod
// whose list leaves out a node, since that was full when it was decided about, would open
// another one, while the scheduler fills the first with a pod whose list has it. Where the
// scheduler does not see all nodes it is just the last one. Call under lock.
func (ix *Index) nextToMove(name string) (best *podRecord, next string) {
	least, choose := int64(math.MaxInt64), ix.allExamined()
	for _, r := range slices.Backward(ix.expected[name]) {
		if !r.applied || !ix.tooMuchOn(name, *r.load) {
			continue
		}
		to := ix.expectedNode(r.pending.listed, name, *r.load)
		room := ix.roomOn(to, *r.load)
		if room > 0 && (room < least || room == least && r.prefers(to, next)) {
			best, next, least = r, to, room
		}
		if best != nil && !choose {
			break
		}
	}
	return best, next
}

// roomOn is how many pods with such a load a node can still take. Call under lock.
func (ix *Index) roomOn(node string, l load) int64 {
	s := ix.states[node]
	if s == nil || s.node == nil {
		return 0
	}
	room := s.allocatable.get(corev1.ResourcePods) - s.used.pods
	for _, r := range l.requests {
		if r.value > 0 {
			room = min(room, (s.allocatable.get(r.name)-s.used.requests.get(r.name))/r.value)
		}
	}
	return max(room, 0)
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
// over may have room. Call under lock.
func (ix *Index) moveUp(gone expectation) {
	if gone.node == "" || !ix.allExamined() {
		return
	}
	for _, from := range slices.Backward(gone.listed) {
		if from == gone.node {
			return
		}
		for _, r := range ix.expected[from] {
			if r.applied && r.prefers(gone.node, from) && ix.hasRoomOn(gone.node, *r.load) {
				ix.charge(r, ownership{owner: ownerTarget, node: gone.node, until: r.until})
				return
			}
		}
	}
}

// prefers tells whether a pod's list has one node before another.
func (r *podRecord) prefers(node, other string) bool {
	for _, name := range r.pending.listed {
		switch name {
		case node:
			return true
		case other:
			return false
		}
	}
	return false
}

// tooMuchOn tells whether more is taken of a node than it has, of what the load asks
// for. Call under lock.
func (ix *Index) tooMuchOn(name string, l load) bool {
	s := ix.states[name]
	if s == nil || s.node == nil {
		return false
	}
	for _, r := range l.requests {
		if s.used.requests.get(r.name) > s.allocatable.get(r.name) {
			return true
		}
	}
	return s.used.pods > s.allocatable.get(corev1.ResourcePods)
}

func (ix *Index) hasRoomOn(node string, l load) bool {
	s := ix.states[node]
	return s != nil && s.node != nil && hasRoom(s, l.requests)
}
