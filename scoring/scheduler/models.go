package scheduler

// Models are the same model by several formulas, at least one.
type Models []Model

// By returns the model by each of the formulas.
func (m *Model) By(all []Formulas) Models {
	list := make(Models, len(all))
	for i, f := range all {
		list[i] = *m
		list[i].formulas = f
	}
	return list
}

// PointsWhileFilling returns, by each model, the ranges of n nodes.
func (ms Models) PointsWhileFilling(n int, node func(int) *Feasible) [][]PointRange {
	all := make([][]PointRange, len(ms))
	for i := range ms {
		points := make([]PointRange, n)
		for k := range points {
			if k > 0 && node(k).SameTo(node(k-1)) {
				points[k] = points[k-1]
				continue
			}
			points[k] = ms[i].pointsWhileFilling(node(k))
		}
		all[i] = points
	}
	return all
}

// MostPoints is an upper bound, by all models, of what the other plugins give a node
// for the pod placed next.
func (ms Models) MostPoints(n *Feasible) int64 {
	most := ms[0].mostPoints(n)
	for i := range ms[1:] {
		most = max(most, ms[i+1].mostPoints(n))
	}
	return most
}

func (m *Model) mostPoints(n *Feasible) int64 {
	w := &m.cfg.PluginWeights
	return w.NodeResourcesFit*m.fit(n.State, 0) + w.BalancedAllocation*MaxNodeScore +
		w.ImageLocality*m.imageLocality(n.Node) + m.taintPoints(n.SoftTaints).max
}

// Most is an upper bound of what the other plugins give any node.
func (m *Model) Most() int64 {
	w := &m.cfg.PluginWeights
	points := MaxNodeScore * (w.NodeResourcesFit + w.BalancedAllocation + w.TaintToleration)
	if len(m.images) > 0 {
		points += MaxNodeScore * w.ImageLocality
	}
	return points
}
