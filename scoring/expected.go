package scoring

import (
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

// moveOn lets pods that are expected on a node go on along their lists, the last ones
// first, as long as there is too much on the node: others were bound to it meanwhile.
// Where the scheduler examines only a part of the nodes that happens all the time, and
// whoever stayed would not count anywhere. Call under lock.
func (ix *Index) moveOn(name string) {
	for i := len(ix.expected[name]) - 1; i >= 0; i-- {
		r := ix.expected[name][i]
		if !r.applied || !ix.tooMuchOn(name, *r.load) {
			continue
		}
		next := ix.expectedNode(r.pending.listed, name, *r.load)
		if !ix.hasRoomOn(next, *r.load) {
			return
		}
		ix.charge(r, ownership{owner: ownerTarget, node: next, until: r.until})
	}
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
