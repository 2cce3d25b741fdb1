package scoring

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Spreader places pods as kube-scheduler would without us, as far as the model of
// its plugins goes: what is there to compare packing with. Default topology
// spreading and inter-pod affinity are not in the model, nor is preemption; where
// the scheduler picks one of equal nodes at random, the Spreader takes the one
// with the lowest hash.
//
// The nodes of the index must not come or go while it is in use.
type Spreader struct {
	cfg     config.Configuration
	index   *Index
	version *SchedulerVersion
	// sequence are the nodes' indices in the index's list, in the scheduler's order.
	sequence []int
	// next is where in the sequence the search for the next pod begins.
	next int
}

// NewSpreader returns a Spreader for the nodes that the index has now.
func NewSpreader(cfg config.Configuration, index *Index, version *SchedulerVersion) *Spreader {
	states, _ := index.States()
	places := newNodeOrder(states).places()
	sequence := make([]int, len(states))
	for i := range sequence {
		sequence[i] = i
	}
	slices.SortFunc(sequence, func(a, b int) int { return cmp.Compare(places[states[a].slot], places[states[b].slot]) })
	return &Spreader{cfg: cfg, index: index, version: version, sequence: sequence}
}

// Place returns the node for a pod, with or without GPUs, or "" when nothing that
// was examined fits. The pod is not changed and counts only once the index is told.
// Like the scheduler, it examines only a part of a large cluster, from where the
// last search ended.
func (p *Spreader) Place(pod *corev1.Pod) string {
	pod = withDefaultedRequests(pod)
	demand := demandOf(pod, p.cfg.Resources, false)
	user, _, reason := userPreferences(pod)
	if reason != ReasonNone {
		return ""
	}
	states, images := p.index.States()
	filter := newPodFilter(pod, &demand)
	examined := p.examine(states, &filter, user)
	m := newModel(&p.cfg.Scheduler, p.version.current()[0], pod, &demand, images, len(states))
	best, most := "", NodePoints{Total: -1}
	var bestNode *node
	for i := range examined.nodes {
		n := &examined.nodes[i]
		points := m.nodePoints(&n.schedulerNode, n.userScore, examined.mostPreferred, examined.mostTaints)
		if points.Total > most.Total || points.Total == most.Total && compareNodes(n.node, bestNode) < 0 {
			best, most, bestNode = n.name, points, n.node
		}
	}
	return best
}

// examined are the nodes that one search of the scheduler comes across.
type examined struct {
	nodes []examinedNode
	// mostPreferred and mostTaints are the largest of their userScores and softTaints.
	mostPreferred, mostTaints int64
}

// examinedNode is one that can take the pod, with what the user's preferred terms give it.
type examinedNode struct {
	schedulerNode
	userScore int64
}

// examine goes through the nodes from where the last search ended.
func (p *Spreader) examine(states []*nodeState, filter *podFilter, user *nodeaffinity.PreferredSchedulingTerms) (e examined) {
	enough, visited := examinedNodes(&p.cfg.Scheduler, len(p.sequence)), 0
	for ; visited < len(p.sequence) && len(e.nodes) < enough; visited++ {
		s := states[p.sequence[(p.next+visited)%len(p.sequence)]]
		if reason, err := filter.check(s); err != nil || reason != NodeFeasible {
			continue
		}
		n := examinedNode{schedulerNode: schedulerNode{s, filter.softTaints(s.node)}}
		if user != nil {
			n.userScore = user.Score(s.object)
		}
		e.mostPreferred, e.mostTaints = max(e.mostPreferred, n.userScore), max(e.mostTaints, n.softTaints)
		e.nodes = append(e.nodes, n)
	}
	if len(e.nodes) > 0 {
		p.next = (p.next + visited) % len(p.sequence)
	}
	return e
}
