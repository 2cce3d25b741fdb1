package scheduler

import "github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"

// VersionHeld is versionHeld, for the tests.
const VersionHeld = versionHeld

// Fit is fit, for the tests.
func (m *Model) Fit(s *nodes.State, level int64) int64 { return m.fit(s, level) }

// Balanced is balanced, for the tests.
func (m *Model) Balanced(s *nodes.State, level int64) int64 { return m.balanced(s, level) }

// ImageLocality is imageLocality, for the tests.
func (m *Model) ImageLocality(n *nodes.Node) int64 { return m.imageLocality(n) }

// RangeWhileFilling is pointsWhileFilling of a node without taints, for the tests.
func (m *Model) RangeWhileFilling(s *nodes.State) (least, most int64) {
	r := m.pointsWhileFilling(&Feasible{State: s})
	return r.min, r.max
}
