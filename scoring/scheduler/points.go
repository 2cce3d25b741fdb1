package scheduler

// Points is what the scheduler is predicted to give one node: a score of 0 to
// 100 per plugin, normalised over all nodes that can take the pod, and their sum
// with the configured plugin weights. It is the model of the weights, made
// visible: package test/agreement compares it with the scheduler's own plugins.
// Its JSON is what explain prints.
type Points struct {
	// Name is the node's metadata.name.
	Name string `json:"-"`
	// NodeAffinity counts all preferred terms on the pod, the user's and ours.
	NodeAffinity int64 `json:"nodeAffinity"`
	// TaintToleration is 100 without PreferNoSchedule taints that the pod does
	// not tolerate, 0 for a node with the most of them.
	TaintToleration int64 `json:"taintToleration"`
	// NodeResourcesFit, BalancedAllocation and ImageLocality are for the pod
	// placed next, on the present usage.
	NodeResourcesFit   int64 `json:"nodeResourcesFit"`
	BalancedAllocation int64 `json:"balancedAllocation"`
	ImageLocality      int64 `json:"imageLocality"`
	// Total is the weighted sum. Spreading and inter-pod affinity are not in it.
	Total int64 `json:"total"`
}

// Points is the prediction for one node. The scheduler normalises by the
// largest score among the feasible nodes: preferences grow with it, taints shrink.
func (m *Model) Points(n *Feasible, userScore, mostPreferred, mostTaints int64) Points {
	w := &m.cfg.PluginWeights
	p := Points{
		Name:               n.Name,
		TaintToleration:    MaxNodeScore,
		NodeResourcesFit:   m.fit(n.State, 0),
		BalancedAllocation: m.balanced(n.State, 0),
		ImageLocality:      m.imageLocality(n.Node),
	}
	if mostPreferred > 0 {
		p.NodeAffinity = MaxNodeScore * userScore / mostPreferred
	}
	if mostTaints > 0 {
		p.TaintToleration = MaxNodeScore - MaxNodeScore*n.SoftTaints/mostTaints
	}
	p.Total = w.NodeAffinity*p.NodeAffinity + w.TaintToleration*p.TaintToleration +
		w.NodeResourcesFit*p.NodeResourcesFit + w.BalancedAllocation*p.BalancedAllocation +
		w.ImageLocality*p.ImageLocality
	return p
}
