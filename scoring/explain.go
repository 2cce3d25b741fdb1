package scoring

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
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
	GPUs []ResourceUse
	// Score is 100*allocated/allocatable before placement, of the tightest requested
	// GPU resource, 0 to 100; FreeAfter is how many of it are left after placement.
	Score, FreeAfter int64
	// FreeMilliCPU and FreeMemory (bytes) are free before placement.
	FreeMilliCPU, FreeMemory int64
	// UserScore is the sum of the user's own preferred weights that match, and
	// SoftTaints the number of PreferNoSchedule taints not tolerated.
	UserScore, SoftTaints int64
}

// LeftOutNode is a node that a pod should not or cannot go to.
type LeftOutNode struct {
	// Name is the node's metadata.name.
	Name string
	// Reason is the first that holds, in the order of the reasons.
	Reason NodeReason
	// Lacking are the resources that the node has too little of, sorted by name,
	// "pods" among them; only with NodeInsufficient.
	Lacking []Shortage
}

// Shortage is a resource that a node has too little of, in whole units, CPU in
// millicores.
type Shortage struct {
	Name            corev1.ResourceName
	Requested, Free int64
}

// ResourceUse is how much of a resource of a node is requested by pods, expected
// ones included, in whole units.
type ResourceUse struct {
	Name                   corev1.ResourceName
	Allocatable, Allocated int64
}

// Free is what is left, never negative: a node may offer more than it has, after a
// GPU went unhealthy.
func (u ResourceUse) Free() int64 { return max(u.Allocatable-u.Allocated, 0) }

// Explain tells what Decide would go by for a pod. It looks at every node, so it is
// for people, not for admission. The pod is not changed and nothing is reserved.
func (s *Scorer) Explain(ctx context.Context, r Request) Explanation {
	r.DryRun, r.Pod = true, s.version.stored(r.Pod)
	e := Explanation{Decision: s.Decide(ctx, r)}
	demand, reason := NewDemand(r.Pod, s.cfg.Resources)
	if reason != ReasonNone || tooManyConstraints(r.Pod) {
		return e
	}
	user, _, reason := userPreferences(r.Pod)
	if reason != ReasonNone {
		return e
	}
	v, states := s.index.explainView(r.Pod, &demand)
	filter := newPodFilter(r.Pod, &demand)
	var candidates []candidate
	for _, state := range states {
		reason, err := v.check(&filter, state)
		switch {
		case err != nil:
			return e // the decision says that the affinity does not parse
		case reason == NodeFeasible:
			candidates = append(candidates, v.newCandidate(state, &filter, user))
		default:
			e.LeftOut = append(e.LeftOut, leftOut(state, reason, &demand))
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return compareCandidates(&a, &b) })
	for i := range candidates {
		e.Candidates = append(e.Candidates, candidates[i].explained(&demand))
	}
	slices.SortFunc(e.LeftOut, func(a, b LeftOutNode) int { return cmp.Compare(a.Name, b.Name) })
	return e
}

// check is the filter's, with the back-off.
func (v *view) check(f *podFilter, s *nodeState) (NodeReason, error) {
	reason, err := f.check(s)
	if reason == NodeFeasible && err == nil && v.inBackoff(s.name) {
		reason = NodeBackoff
	}
	return reason, err
}

func leftOut(s *nodeState, reason NodeReason, d *Demand) LeftOutNode {
	out := LeftOutNode{Name: s.name, Reason: reason}
	if reason == NodeInsufficient {
		out.Lacking = shortages(s, d)
	}
	return out
}

// explainView is the view of a pod, also of one that is pinned, and all nodes.
func (ix *Index) explainView(pod *corev1.Pod, demand *Demand) (view, []*nodeState) {
	v := ix.predictView(pod, demand)
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return v, slices.Clone(ix.order)
}

// explained is a candidate as people see it.
func (c *candidate) explained(d *Demand) CandidateNode {
	n := CandidateNode{
		Name: c.name, Score: c.score, FreeAfter: c.freeAfter,
		FreeMilliCPU: c.free(corev1.ResourceCPU), FreeMemory: c.free(corev1.ResourceMemory),
		UserScore: c.userScore, SoftTaints: c.softTaints,
	}
	for _, g := range d.GPUs {
		n.GPUs = append(n.GPUs, c.use(g.Name))
	}
	return n
}

func (s *nodeState) free(name corev1.ResourceName) int64 {
	return s.allocatable.get(name) - s.used.requests.get(name)
}

func (s *nodeState) use(name corev1.ResourceName) ResourceUse {
	return ResourceUse{Name: name, Allocatable: s.allocatable.get(name), Allocated: s.used.requests.get(name)}
}

// shortages are the resources that keep a pod from fitting, as hasRoom sees it.
func shortages(s *nodeState, d *Demand) []Shortage {
	var list []Shortage
	if free := s.allocatable.get(corev1.ResourcePods) - s.used.pods; free < 1 {
		list = append(list, Shortage{Name: corev1.ResourcePods, Requested: 1, Free: free})
	}
	for _, r := range d.requests {
		if free := s.free(r.name); free < r.value {
			list = append(list, Shortage{Name: r.name, Requested: r.value, Free: free})
		}
	}
	slices.SortFunc(list, func(a, b Shortage) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
