package scoring

import "math"

// Replicas decide at the same time, and each learns what the others decided when it
// sees their pods: some hundredths to tenths of a second later, in which a controller
// may create hundreds of pods. Until then each gives the same room away again. A pod
// for which that leaves none goes on along its list of nodes, and past the list's end
// to a node that nobody chose.
//
// So a replica assumes that the others decide as often as their share of the pods
// seen lately says. While n of its own decisions are unseen, so are about
// n * others/own of theirs. For these it holds room on the nodes that it would list
// for them, and gives a piece up for each pod of theirs that it sees, at the latest
// when it sees its own pod of the same time.

// peers is what an index assumes of the other replicas. The zero value assumes none.
type peers struct {
	// own and others count pods seen, the last ones more than those before.
	own, others float64
	// owed is the part of a decision of theirs for which no room is held yet.
	owed float64
	// held is the room held, oldest first, and some given up already.
	held []*heldRoom
}

// heldRoom is a charge for a pod that another replica may have decided about.
type heldRoom struct {
	charge
	over bool
}

const (
	// peersMemory is over how many pods the shares are taken. At two replicas the
	// share in 256 pods is 0.5 +- 0.03. It has to follow when a replica comes or goes.
	peersMemory = 256
	// maxPeers bounds how many decisions of others are assumed for one of our own: a
	// replica that just came has seen only pods of others. More than four replicas
	// are rare, and then too little is held, as if there were only four.
	maxPeers = 3
	// heldShare is how much of the others' decisions room is held for while the
	// scheduler examines every node. Too much takes nodes too early; what is too
	// little the lists make up for, with room for a hundred pods or more. In larger
	// clusters the scheduler sees only a part of a list, and all is held.
	// Shares of 0.7 to 1 compared by the burst of TestReplicasAssumeEachOther.
	heldShare = 0.8
)

// note counts a pod seen.
func (p *peers) note(own bool) {
	p.own *= 1 - 1.0/peersMemory
	p.others *= 1 - 1.0/peersMemory
	if own {
		p.own++
	} else {
		p.others++
	}
}

// perDecision is how many decisions of others there are for one of our own. A first
// few pods of others say little as long as there are none of our own.
func (p *peers) perDecision() float64 {
	return min(p.others/max(p.own, 1), maxPeers)
}

// due returns for how many decisions of others room is to be held after one of our
// own, if it is held for that share of them.
func (p *peers) due(share float64) int {
	whole, part := math.Modf(p.owed + share*p.perDecision())
	p.owed = part
	return int(whole)
}

// hold holds room for what other replicas decide while the pod of this decision is
// not seen: for pods like it, on the nodes that it lists. Call under lock.
func (ix *Index) hold(d *Decision, l load) (held []*heldRoom) {
	next, share := 0, 1.0
	if nodes := len(ix.order); examinedNodes(&ix.cfg.Scheduler, nodes) == nodes {
		share = heldShare
	}
	for range ix.peers.due(share) {
		for next < len(d.Ranking) && !ix.hasRoomOn(d.Ranking[next].Name, l) {
			next++
		}
		if next == len(d.Ranking) {
			break
		}
		h := &heldRoom{charge: charge{node: d.Ranking[next].Name, load: l}}
		ix.apply(1, h.charge)
		held = append(held, h)
	}
	ix.peers.held = append(ix.peers.held, held...)
	return held
}

func (ix *Index) hasRoomOn(node string, l load) bool {
	s := ix.states[node]
	return s != nil && s.node != nil && hasRoom(s, l.requests)
}

// giveUp ends the holding of room. Call under lock.
func (ix *Index) giveUp(held ...*heldRoom) {
	for _, h := range held {
		if !h.over {
			h.over = true
			ix.apply(-1, h.charge)
		}
	}
	for len(ix.peers.held) > 0 && ix.peers.held[0].over {
		ix.peers.held[0] = nil
		ix.peers.held = ix.peers.held[1:]
	}
}

// seePending notes a pod that is seen for the first time, with a decision of this
// replica or of another. Call under lock.
func (ix *Index) seePending(own bool) {
	if !ix.Synced() {
		return // who decided about it is not known
	}
	ix.peers.note(own)
	if !own && len(ix.peers.held) > 0 {
		ix.giveUp(ix.peers.held[0])
	}
}

// giveUpAll gives up all room held. It tells whether there was any.
func (ix *Index) giveUpAll() bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	any := len(ix.peers.held) > 0
	ix.giveUp(ix.peers.held...)
	return any
}
