package simulate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// spreader places pods as kube-scheduler would without us, as far as the model of
// its plugins goes: what is there to compare packing with. Default topology
// spreading and inter-pod affinity are not in the model, nor is preemption; where
// the scheduler picks one of equal nodes at random, the Spreader takes the one
// with the lowest hash.
//
// The nodes of the index must not come or go while it is in use.
type spreader struct {
	cfg     config.Configuration
	ix      *index.Index
	version *scheduler.Version
	// sequence are the nodes' indices in the index's list, in the scheduler's order.
	sequence []int
	// next is where in the sequence the search for the next pod begins.
	next int
}

// newSpreader returns a spreader for the nodes that the index has now.
func newSpreader(cfg config.Configuration, ix *index.Index, version *scheduler.Version) *spreader {
	states, _ := ix.States()
	places := scheduler.NewOrder(states).Places()
	sequence := make([]int, len(states))
	for i := range sequence {
		sequence[i] = i
	}
	slices.SortFunc(sequence, func(a, b int) int { return cmp.Compare(places[states[a].Slot], places[states[b].Slot]) })
	return &spreader{cfg: cfg, ix: ix, version: version, sequence: sequence}
}

// Place returns the node for a pod, with or without GPUs, or "" when nothing that
// was examined fits. The pod is not changed and counts only once the index is told.
// Like the scheduler, it examines only a part of a large cluster, from where the
// last search ended.
func (p *spreader) Place(pod *corev1.Pod) string {
	pod = demand.WithDefaultedRequests(pod)
	asked := demand.OfStored(pod, p.cfg.Resources, false)
	user, _, reason := nodes.UserPreferences(pod)
	if reason != steering.ReasonNone {
		return ""
	}
	states, images := p.ix.States()
	filter := nodes.NewFilter(pod, &asked)
	examined := p.examine(states, &filter, user)
	m := scheduler.NewModel(&p.cfg.Scheduler, p.version.Current()[0], pod, &asked, images, len(states))
	best, most := "", scheduler.Points{Total: -1}
	var bestNode *nodes.Node
	for i := range examined.nodes {
		n := &examined.nodes[i]
		points := m.Points(&n.Feasible, n.userScore, examined.mostPreferred, examined.mostTaints)
		if points.Total > most.Total || points.Total == most.Total && nodes.CompareNodes(n.Node, bestNode) < 0 {
			best, most, bestNode = n.Name, points, n.Node
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
	scheduler.Feasible
	userScore int64
}

// examine goes through the nodes from where the last search ended.
func (p *spreader) examine(states []*nodes.State, filter *nodes.Filter, user *nodeaffinity.PreferredSchedulingTerms) (e examined) {
	enough, visited := scheduler.Examined(&p.cfg.Scheduler, len(p.sequence)), 0
	for ; visited < len(p.sequence) && len(e.nodes) < enough; visited++ {
		s := states[p.sequence[(p.next+visited)%len(p.sequence)]]
		if reason, err := filter.Check(s); err != nil || reason != nodes.Feasible {
			continue
		}
		n := examinedNode{Feasible: scheduler.Feasible{State: s, SoftTaints: filter.SoftTaints(s.Node)}}
		if user != nil {
			n.userScore = user.Score(s.Object)
		}
		e.mostPreferred, e.mostTaints = max(e.mostPreferred, n.userScore), max(e.mostTaints, n.SoftTaints)
		e.nodes = append(e.nodes, n)
	}
	if len(e.nodes) > 0 {
		p.next = (p.next + visited) % len(p.sequence)
	}
	return e
}
