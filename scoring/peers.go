package scoring

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gpu-binpacker/gpu-binpacker/config"
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

// peers is what an index assumes of the other replicas. The zero value assumes none.
type peers struct {
	// replicas are the pods of the webhook that are ready, this process' own among them.
	replicas sets.Set[types.UID]
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

// noteReplica follows which pods are replicas. Call under lock.
func (ix *Index) noteReplica(pod *reducedPod) {
	if pod.replica {
		ix.peers.replicas.Insert(pod.uid)
	} else {
		ix.peers.replicas.Delete(pod.uid)
	}
}

// isReplica tells whether a pod serves as this process does: the API server calls it
// as well.
func (ix *Index) isReplica(pod *corev1.Pod) bool {
	return pod.Namespace == ix.ownNamespace && ix.ownNamespace != "" && pod.DeletionTimestamp == nil &&
		pod.Labels[config.LabelName] == config.WebhookPodName &&
		pod.Labels[config.LabelComponent] == config.WebhookPodComponent && isPodReady(pod)
}

func isPodReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// note counts a pod of a burst.
func (p *peers) note(own bool) {
	p.own *= 1 - 1.0/peersMemory
	p.others *= 1 - 1.0/peersMemory
	if own {
		p.own++
	} else {
		p.others++
	}
}

// perDecision is how many decisions of others are assumed for one of our own. Bursts
// only tell whether others take part at all: in a Service that prefers one replica, say,
// or where our own pods cannot be seen.
func (p *peers) perDecision() int {
	others := min(max(len(p.replicas)-1, 0), maxPerDecision)
	if p.own+p.others < fewPods {
		return others
	}
	if leastShare*p.others < p.own {
		return 0
	}
	return max(others, 1)
}

// hold holds room for what other replicas decide while the pod of this decision is
// not seen: for pods like it, on the nodes that it lists. Call under lock.
func (ix *Index) hold(d *Decision, l load) (held []*heldRoom) {
	slack, next := slackNodes, 0
	if ix.allExamined() {
		slack = ix.cfg.Weights.MaxTerms / 2
	}
	slack *= ix.perNode(d.Target(), l)
	for range min(ix.peers.perDecision(), maxHeld-len(ix.peers.held)) {
		h := &heldRoom{charged: ix.peers.outstanding >= slack}
		if h.charged {
			for next < len(d.Ranking) && !ix.hasRoomOn(d.Ranking[next].Name, l) {
				next++
			}
			if next == len(d.Ranking) {
				break
			}
			h.charge = charge{node: d.Ranking[next].Name, load: l}
			ix.apply(1, h.charge)
		}
		ix.peers.outstanding++
		held = append(held, h)
	}
	ix.peers.held = append(ix.peers.held, held...)
	return held
}

// perNode is how many pods with such a load a node can take when it is empty, by its
// GPUs. Call under lock.
func (ix *Index) perNode(name string, l load) int {
	most := int64(1)
	if s := ix.states[name]; s != nil && s.node != nil {
		for _, gpu := range l.occupants {
			most = max(most, s.allocatable.get(gpu.name)/l.requests.get(gpu.name))
		}
	}
	return int(most)
}

// giveUp ends the holding of room. Call under lock.
func (ix *Index) giveUp(held ...*heldRoom) {
	for _, h := range held {
		if h.over {
			continue
		}
		h.over = true
		ix.peers.outstanding--
		if h.charged {
			ix.apply(-1, h.charge)
		}
	}
	for len(ix.peers.held) > 0 && ix.peers.held[0].over {
		ix.peers.held[0] = nil
		ix.peers.held = ix.peers.held[1:]
	}
}

// seePending notes a GPU pod that is seen for the first time, with a decision of this
// replica or of another. One seen late says nothing: our own reservation may have
// ended. Call under lock.
func (ix *Index) seePending(pod *reducedPod, own bool, now time.Time) {
	late := now.Sub(time.Unix(pod.created, 0)) >= ix.cfg.InFlight.ReservationTTL.Duration
	if !ix.Synced() || late || !pod.usesGPUs(ix.cfg.Resources) {
		return
	}
	if len(ix.reservations) >= burstDecisions {
		ix.peers.note(own)
	}
	if !own && len(ix.peers.held) > 0 {
		ix.giveUp(ix.peers.held[0])
	}
}

// giveUpFor gives up what is held where it keeps the pod from fitting: the last room
// is not held for others, nor that on nodes that the pod's own preferences ask for.
// Call under lock.
func (ix *Index) giveUpFor(pod *corev1.Pod, demand *Demand) {
	if len(ix.peers.held) == 0 || isPinned(pod) {
		return
	}
	pool, byNode := ix.poolFor(pod, demand), map[string][]*heldRoom{}
	for _, h := range ix.peers.held {
		if h.charged && !h.over {
			byNode[h.node] = append(byNode[h.node], h)
		}
	}
	for name, held := range byNode {
		s := ix.states[name]
		if s == nil || s.node == nil || pool.member(s.node)&eligible == 0 || fits(s, demand) {
			continue
		}
		for _, h := range held {
			s = s.without(h.charge)
		}
		if fits(s, demand) {
			ix.giveUp(held...)
		}
	}
}
