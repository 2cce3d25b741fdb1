package scoring

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// NodePoints is what the scheduler is predicted to give one node: a score of 0 to
// 100 per plugin, normalised over all nodes that can take the pod, and their sum
// with the configured plugin weights. It is the model of the weights, made
// visible: package test/agreement compares it with the scheduler's own plugins.
type NodePoints struct {
	// Name is the node's metadata.name.
	Name string
	// NodeAffinity counts all preferred terms on the pod, the user's and ours.
	NodeAffinity int64
	// TaintToleration is 100 without PreferNoSchedule taints that the pod does
	// not tolerate, 0 for a node with the most of them.
	TaintToleration int64
	// NodeResourcesFit, BalancedAllocation and ImageLocality are for the pod
	// placed next, on the present usage.
	NodeResourcesFit, BalancedAllocation, ImageLocality int64
	// Total is the weighted sum. Spreading and inter-pod affinity are not in it.
	Total int64
}

// Predict returns the points of every node that can take the pod, sorted by name.
// The pod is taken as the scheduler will see it, with our terms if it has any; it
// is not changed, and nothing is reserved for it. The reason is that of Decide: a
// pinned pod has points too, any other reason leaves none.
func (s *Scorer) Predict(pod *corev1.Pod) ([]NodePoints, Reason) {
	pod = s.version.stored(pod)
	demand, reason := NewDemand(pod, s.cfg.Resources)
	if reason == ReasonNone && !s.index.Synced() {
		reason = ReasonNotSynced
	}
	if reason == ReasonNone && tooManyConstraints(pod) {
		reason = ReasonTooLarge
	}
	if reason != ReasonNone {
		return nil, reason
	}
	v := s.index.predictView(pod, &demand)
	f, reason := s.feasible(context.Background(), v, pod, &demand, allNodes)
	m := newModel(&s.cfg.Scheduler, s.version.current()[0], pod, &demand, v.images, v.nodes)
	var mostPreferred int64
	for i := range f.candidates {
		mostPreferred = max(mostPreferred, f.candidates[i].userScore)
	}
	points := make([]NodePoints, len(f.candidates))
	for i := range f.candidates {
		points[i] = m.nodePoints(&f.candidates[i], mostPreferred, f.softTaints)
	}
	slices.SortFunc(points, func(a, b NodePoints) int { return cmp.Compare(a.Name, b.Name) })
	return points, reason
}

// predictView is the view of a pod, also of one that is pinned.
func (ix *Index) predictView(pod *corev1.Pod, demand *Demand) view {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	v := ix.viewLocked(Request{Pod: pod}, demand, ix.now(), false)
	if v.pool.tree == nil {
		ix.addPool(&v, pod, demand)
	}
	return v
}

// nodePoints is the prediction for one node. The scheduler normalises by the
// largest score among the feasible nodes: preferences grow with it, taints shrink.
func (m *model) nodePoints(c *candidate, mostPreferred, mostTaints int64) NodePoints {
	w := &m.cfg.PluginWeights
	p := NodePoints{
		Name:               c.name,
		TaintToleration:    maxNodeScore,
		NodeResourcesFit:   m.fit(c.nodeState, 0),
		BalancedAllocation: m.balanced(c.nodeState, 0),
		ImageLocality:      m.imageLocality(c.node),
	}
	if mostPreferred > 0 {
		p.NodeAffinity = maxNodeScore * c.userScore / mostPreferred
	}
	if mostTaints > 0 {
		p.TaintToleration = maxNodeScore - maxNodeScore*c.softTaints/mostTaints
	}
	p.Total = w.NodeAffinity*p.NodeAffinity + w.TaintToleration*p.TaintToleration +
		w.NodeResourcesFit*p.NodeResourcesFit + w.BalancedAllocation*p.BalancedAllocation +
		w.ImageLocality*p.ImageLocality
	return p
}
