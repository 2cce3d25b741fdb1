package nodes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// A pod's constraints are compared with every node, and a pool keeps them for as long as
// there is one. The API server bounds none of them but by the size of the whole pod.

const (
	// maxConstraints bounds the requirements of a pod's node selector, tolerations, required
	// and preferred node affinity together. Real pods have a few.
	maxConstraints = 200
	// valuesPerConstraint is how many values of a requirement take as long to compare as
	// a requirement: one value takes 2 to 5 ns, and a requirement 40 to 80.
	valuesPerConstraint = 16
	// MaxConstraintBytes bounds their keys and values: a kilobyte for each of 64 nodes'
	// names, labels or taints. A pool keeps them three times: as they are, as its kind, and
	// compiled.
	MaxConstraintBytes = 64 << 10
	// maxComparisons bounds the requirements times the nodes: 50 to 100 ms of a core, a
	// fifth of the time that a decision has. With 5,000 nodes that is maxConstraints.
	maxComparisons = 1_000_000
)

// Constraints are how much a pod's node selector, tolerations, required and preferred node
// affinity are, together.
type Constraints struct {
	// count is how many requirements there are, values and bytes what is in them.
	count, values, bytes int
}

// CountConstraints goes through the constraints of a pod.
func CountConstraints(pod *corev1.Pod) Constraints {
	var c Constraints
	for key, value := range pod.Spec.NodeSelector {
		c.add(key, value)
	}
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		c.add(t.Key, string(t.Operator), t.Value, string(t.Effect))
	}
	if required := requiredTerms(pod); required != nil {
		for i := range required.NodeSelectorTerms {
			c.addTerm(&required.NodeSelectorTerms[i])
		}
	}
	preferred := steering.PreferredTerms(pod)
	for i := range preferred {
		c.addTerm(&preferred[i].Preference)
	}
	return c
}

// add counts one requirement with these texts.
func (c *Constraints) add(texts ...string) {
	c.count++
	for _, t := range texts {
		c.bytes += len(t)
	}
}

// addTerm counts the requirements of a term, and one that has none as one.
func (c *Constraints) addTerm(term *corev1.NodeSelectorTerm) {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		c.count++
	}
	for _, list := range [][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
		for i := range list {
			c.add(list[i].Key, string(list[i].Operator))
			c.values += len(list[i].Values)
			for _, value := range list[i].Values {
				c.bytes += len(value)
			}
		}
	}
}

// TooLarge tells whether they are more than a decision should go through in a cluster with
// so many nodes, which is asked for only if it matters.
func (c Constraints) TooLarge(nodes func() int) bool {
	cost := c.count + c.values/valuesPerConstraint
	switch {
	case cost > maxConstraints || c.bytes > MaxConstraintBytes:
		return true
	case cost <= fewConstraints:
		return false
	}
	return cost*nodes() > maxComparisons
}

// fewConstraints are few enough for any cluster: 20,000 nodes are more than there are in one.
const fewConstraints = maxComparisons / 20_000
