package scoring

// models are the same model by several formulas, at least one.
type models []model

// by returns the model by each of the formulas.
func (m *model) by(all []formulas) models {
	list := make(models, len(all))
	for i, f := range all {
		list[i] = *m
		list[i].formulas = f
	}
	return list
}

// pointsWhileFilling returns, by each model, the ranges of n nodes.
func (ms models) pointsWhileFilling(n int, node func(int) *schedulerNode) [][]pointRange {
	all := make([][]pointRange, len(ms))
	for i := range ms {
		points := make([]pointRange, n)
		for k := range points {
			if k > 0 && node(k).sameTo(node(k-1)) {
				points[k] = points[k-1]
				continue
			}
			points[k] = ms[i].pointsWhileFilling(node(k))
		}
		all[i] = points
	}
	return all
}

// mostPoints is an upper bound, by all models, of what the other plugins give a node
// for the pod placed next.
func (ms models) mostPoints(n *schedulerNode) int64 {
	most := ms[0].mostPoints(n)
	for i := range ms[1:] {
		most = max(most, ms[i+1].mostPoints(n))
	}
	return most
}

func (m *model) mostPoints(n *schedulerNode) int64 {
	w := &m.cfg.PluginWeights
	return w.NodeResourcesFit*m.fit(n.nodeState, 0) + w.BalancedAllocation*maxNodeScore +
		w.ImageLocality*m.imageLocality(n.node) + m.taintPoints(n.softTaints).max
}

// most is an upper bound of what the other plugins give any node.
func (m *model) most() int64 {
	w := &m.cfg.PluginWeights
	points := maxNodeScore * (w.NodeResourcesFit + w.BalancedAllocation + w.TaintToleration)
	if len(m.images) > 0 {
		points += maxNodeScore * w.ImageLocality
	}
	return points
}
