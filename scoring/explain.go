package scoring

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Explanation is what a decision about a pod goes by, node for node.
type Explanation struct {
	// Decision is what would be decided now. Nothing is reserved.
	Decision Decision
	// Candidates can take the pod, in the order in which they are to be filled.
	// That is the order of the decision's ranking, but for nodes that a ranking
	// leaves out: beyond the number of terms, or in a worse class by the user's own
	// preferences.
	Candidates []CandidateNode
	// LeftOut are all other nodes, sorted by name.
	LeftOut []LeftOutNode
}

// CandidateNode is a node that can take a pod.
type CandidateNode struct {
	// Name is the node's metadata.name.
	Name string
	// GPUs are the GPU resources that the pod asks for, sorted by name, before
	// placement.
	GPUs []nodes.ResourceUse
	// Score is 100*allocated/allocatable before placement, of the tightest requested
	// GPU resource, 0 to 100; FreeAfter is how many of it are left after placement.
	Score, FreeAfter int64
	// FreeMilliCPU and FreeMemory (bytes) are free before placement.
	FreeMilliCPU, FreeMemory int64
	// UserScore is the sum of the user's own preferred weights that match, and
	// SoftTaints the number of PreferNoSchedule taints not tolerated.
	UserScore, SoftTaints int64
}

// LeftOutNode is a node that a pod should not or cannot go to. Its JSON is what explain
// prints.
type LeftOutNode struct {
	// Name is the node's metadata.name.
	Name string `json:"node"`
	// Reason is the first that holds, in the order of the reasons.
	Reason nodes.Reason `json:"reason"`
	// Lacking are the resources that the node has too little of, sorted by name,
	// "pods" among them; only with NodeInsufficient.
	Lacking []nodes.Shortage `json:"lacking,omitempty"`
	// Backoff says for which pods the node is in back-off; only with NodeBackoff.
	Backoff *index.Rule `json:"backoff,omitempty"`
}

// Explain tells what Decide would go by for a pod. It looks at every node, so it is
// for people, not for admission. The pod is not changed and nothing is reserved.
func (s *Scorer) Explain(ctx context.Context, r Request) Explanation {
	q, reason := s.query(r)
	if reason != steering.ReasonNone {
		return Explanation{Decision: Decision{Reason: reason, UID: r.UID}}
	}
	q.AllNodes = true
	d, v := s.look(ctx, q)
	e := Explanation{Decision: d}
	if d.Reason == steering.ReasonTimeout {
		return e
	}
	user, _, reason := nodes.UserPreferences(q.Pod)
	if reason != steering.ReasonNone {
		return e
	}
	filter := nodes.NewFilter(q.Pod, q.Demand)
	var candidates []candidate
	for _, state := range v.All {
		reason, err := filter.Check(state)
		rule, held := v.BackoffRule(state.Name)
		switch {
		case err != nil:
			return e // the decision says that the affinity does not parse
		case reason == nodes.Feasible && !held:
			candidates = append(candidates, newCandidate(&v, state, &filter, user))
		default:
			e.LeftOut = append(e.LeftOut, leftOut(state, reason, q.Demand, rule))
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return compareCandidates(&a, &b) })
	for i := range candidates {
		e.Candidates = append(e.Candidates, candidates[i].explained(q.Demand))
	}
	slices.SortFunc(e.LeftOut, func(a, b LeftOutNode) int { return cmp.Compare(a.Name, b.Name) })
	return e
}

// leftOut says why a node is no candidate: for the filter's reason, or since it refused
// pods, by that rule, if the filter has none.
func leftOut(s *nodes.State, reason nodes.Reason, d *demand.Demand, rule index.Rule) LeftOutNode {
	out := LeftOutNode{Name: s.Name, Reason: reason}
	switch reason {
	case nodes.Feasible:
		out.Reason, out.Backoff = nodes.Backoff, &rule
	case nodes.Insufficient:
		out.Lacking = nodes.Shortages(s, d)
	}
	return out
}

// explained is a candidate as people see it.
func (c *candidate) explained(d *demand.Demand) CandidateNode {
	n := CandidateNode{
		Name: c.Name, Score: c.score, FreeAfter: c.freeAfter,
		FreeMilliCPU: c.Free(corev1.ResourceCPU), FreeMemory: c.Free(corev1.ResourceMemory),
		UserScore: c.userScore, SoftTaints: c.SoftTaints,
	}
	for _, g := range d.GPUs {
		n.GPUs = append(n.GPUs, c.Use(g.Name))
	}
	return n
}
