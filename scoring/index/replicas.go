package index

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
)

// Replicas decide at the same time, and each learns what the others decided when it
// sees their pods: some hundredths to tenths of a second later, in which a controller
// may create hundreds of pods. Until then each gives the same room away again. A pod
// for which that leaves none goes on along its list of nodes, and past the list's end
// to a node that nobody chose.
//
// So a replica assumes that each of the others decides as often as it does itself, as
// a Service spreads the connections of a burst. While n of its own decisions are unseen,
// so are about n of each other replica. For these it holds room on the nodes that it
// would list for them, and gives a piece up for each pod of theirs that it sees, at the
// latest when it sees its own pod of the same time.
//
// How many there are it knows from its own pods, of which the watch tells like of all
// others. How the calls were shared before says nothing of the next burst: requests that
// come one after another use one connection, so that all go to one replica, and those
// that come at the same time use many (see TestBurstAfterUnevenCalls).

// replicas is what an index assumes of the other replicas.
type replicas struct {
	usage *usage
	// maxTerms is the configured length of a list.
	maxTerms int
	// ready are the pods of the webhook that are ready, this process' own among them.
	ready sets.Set[types.UID]
	// own and others count the pods of bursts, the last ones more than those before.
	own, others float64
	// held is the room held, oldest first, and some given up already; outstanding is
	// how many were not.
	held        []*heldRoom
	outstanding int
}

// heldRoom is for a pod that another replica may have decided about. The first few
// are only counted: see slackNodes.
type heldRoom struct {
	charge
	charged, over bool
}

const (
	// burstDecisions is from how many unseen decisions of its own on a replica is in a
	// burst. Fewer are unseen when 100 pods a second come one after another and are seen
	// a tenth of a second later.
	burstDecisions = 16
	// peersMemory is over how many pods of bursts own and others are counted, fewPods
	// from how many on they say whether others take part: those of one burst, which came
	// over some tens of connections.
	peersMemory = 256
	fewPods     = 64
	// leastShare: others take no part if they decide about less than one pod for so many
	// of ours. Of 32 connections, each of which may go to either of two replicas, the
	// other one gets so few once in a hundred million times.
	leastShare = 16
	// maxPerDecision bounds how many decisions of others are assumed for one of our
	// own. More than four replicas are rare; then too little is assumed.
	maxPerDecision = 3
	// slackNodes is for how many nodes' worth of pods of others no room is held where
	// the scheduler sees only a part of each list; where it sees all, half a list's.
	// The lists make up for too little. Too much takes nodes too early, all the more
	// when the shares were wrong, and bursts that are small keep together this way.
	slackNodes = 2
	// maxHeld bounds memory and the time to give everything up, which is 30 ms with
	// 20 pools. A controller creates 512 pods at a time.
	maxHeld = 1024
)

// note follows which pods are replicas.
func (r *replicas) note(pod *reduced.Pod) {
	if pod.Replica {
		r.ready.Insert(pod.UID)
	} else {
		r.ready.Delete(pod.UID)
	}
}

// noteBurst counts a pod of a burst.
func (r *replicas) noteBurst(own bool) {
	r.own *= 1 - 1.0/peersMemory
	r.others *= 1 - 1.0/peersMemory
	if own {
		r.own++
	} else {
		r.others++
	}
}

// perDecision is how many decisions of others are assumed for one of our own. Bursts
// only tell whether others take part at all: in a Service that prefers one replica, say,
// or where our own pods cannot be seen.
func (r *replicas) perDecision() int {
	others := min(max(len(r.ready)-1, 0), maxPerDecision)
	if r.own+r.others < fewPods {
		return others
	}
	if leastShare*r.others < r.own {
		return 0
	}
	return max(others, 1)
}

// hold holds room for what other replicas decide while the pod of this decision is not
// seen: for pods like it, on the nodes that it lists.
func (r *replicas) hold(listed []string, l demand.Load, examinesAll bool) (held []*heldRoom) {
	slack, next := slackNodes, 0
	if examinesAll {
		slack = r.maxTerms / 2
	}
	slack *= r.usage.perEmptyNode(listed[0], l)
	for range min(r.perDecision(), maxHeld-len(r.held)) {
		h := &heldRoom{charged: r.outstanding >= slack}
		if h.charged {
			for next < len(listed) && !r.usage.hasRoom(listed[next], l) {
				next++
			}
			if next == len(listed) {
				break
			}
			h.charge = charge{Node: listed[next], load: l}
			r.usage.apply(1, h.charge)
		}
		r.outstanding++
		held = append(held, h)
	}
	r.held = append(r.held, held...)
	return held
}

// giveUp ends the holding of room.
func (r *replicas) giveUp(held ...*heldRoom) {
	for _, h := range held {
		if h.over {
			continue
		}
		h.over = true
		r.outstanding--
		if h.charged {
			r.usage.apply(-1, h.charge)
		}
	}
	for len(r.held) > 0 && r.held[0].over {
		r.held[0] = nil
		r.held = r.held[1:]
	}
}

// giveUpOldest gives up what is held for longest: a pod of another replica was seen.
func (r *replicas) giveUpOldest() {
	if len(r.held) > 0 {
		r.giveUp(r.held[0])
	}
}

// inTheWay returns the held room that keeps a pod from fitting on a node.
func (r *replicas) inTheWay(d *demand.Demand) (charges []charge) {
	r.eachInTheWay(d, func(_ *nodes.State, held []*heldRoom) {
		for _, h := range held {
			charges = append(charges, h.charge)
		}
	})
	return charges
}

// giveUpFor gives up what is held where it keeps a pod of the pool from fitting: the last
// room is not held for others, nor that on nodes that the pod's own preferences ask for.
func (r *replicas) giveUpFor(p *pool.Pool, d *demand.Demand) {
	r.eachInTheWay(d, func(s *nodes.State, held []*heldRoom) {
		if p.IsEligible(s.Node) {
			r.giveUp(held...)
		}
	})
}

// eachInTheWay calls do for every node on which the pod would fit without what is held
// there, and does not fit with it.
func (r *replicas) eachInTheWay(d *demand.Demand, do func(*nodes.State, []*heldRoom)) {
	byNode := map[string][]*heldRoom{}
	for _, h := range r.held {
		if h.charged && !h.over {
			byNode[h.Node] = append(byNode[h.Node], h)
		}
	}
	for name, held := range byNode {
		s := r.usage.of(name)
		if s == nil || nodes.Fits(s, d) {
			continue
		}
		without := s
		for _, h := range held {
			without = without.Without(h.load)
		}
		if nodes.Fits(without, d) {
			do(s, held)
		}
	}
}
