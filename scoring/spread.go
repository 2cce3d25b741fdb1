package scoring

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Spreader places pods as kube-scheduler would without us, as far as the model of
// its plugins goes: what is there to compare packing with. Default topology
// spreading and inter-pod affinity are not in the model, nor is preemption; where
// the scheduler picks one of equal nodes at random, the Spreader takes the one
// with the lowest hash.
//
// The nodes of the index must not come or go while it is in use.
type Spreader struct {
	scorer *Scorer
	// sequence are the places of the nodes in the index, in the scheduler's order.
	sequence []int
	// next is where in the sequence the search for the next pod begins.
	next int
}

// NewSpreader returns a Spreader for the nodes that the scorer's index has now.
func NewSpreader(s *Scorer) *Spreader {
	ix := s.index
	ix.mu.Lock()
	defer ix.mu.Unlock()
	places := newNodeOrder(ix.usage.list).places()
	sequence := make([]int, len(ix.usage.list))
	for i := range sequence {
		sequence[i] = i
	}
	slices.SortFunc(sequence, func(a, b int) int { return cmp.Compare(places[ix.usage.list[a].slot], places[ix.usage.list[b].slot]) })
	return &Spreader{scorer: s, sequence: sequence}
}

// Place returns the node for a pod, with or without GPUs, or "" when nothing that
// was examined fits. The pod is not changed and counts only once the index is told.
// Like the scheduler, it examines only a part of a large cluster, from where the
// last search ended.
func (p *Spreader) Place(pod *corev1.Pod) string {
	pod = withDefaultedRequests(pod)
	demand := demandOf(pod, p.scorer.cfg.Resources, false)
	user, _, reason := userPreferences(pod)
	if reason != ReasonNone {
		return ""
	}
	ix := p.scorer.index
	ix.mu.Lock()
	defer ix.mu.Unlock()
	filter := newPodFilter(pod, &demand)
	var candidates []candidate
	var mostPreferred, mostTaints int64
	enough := examinedNodes(&p.scorer.cfg.Scheduler, len(p.sequence))
	visited := 0
	for ; visited < len(p.sequence) && len(candidates) < enough; visited++ {
		s := ix.usage.list[p.sequence[(p.next+visited)%len(p.sequence)]]
		if reason, err := filter.check(s); err != nil || reason != NodeFeasible {
			continue
		}
		c := candidate{schedulerNode: schedulerNode{s, filter.softTaints(s.node)}}
		if user != nil {
			c.userScore = user.Score(s.object)
		}
		mostPreferred, mostTaints = max(mostPreferred, c.userScore), max(mostTaints, c.softTaints)
		candidates = append(candidates, c)
	}
	if len(candidates) == 0 {
		return ""
	}
	p.next = (p.next + visited) % len(p.sequence)
	m := newModel(&p.scorer.cfg.Scheduler, p.scorer.version.current()[0], pod, &demand, ix.images.table, len(ix.usage.list))
	best, most := &candidates[0], int64(-1)
	for i := range candidates {
		total := m.nodePoints(&candidates[i].schedulerNode, candidates[i].userScore, mostPreferred, mostTaints).Total
		if total > most || total == most && compareNodes(candidates[i].node, best.node) < 0 {
			best, most = &candidates[i], total
		}
	}
	return best.name
}
