package scoring

import (
	"cmp"
	"slices"
)

// NodeUse is how the GPUs of one node are used.
type NodeUse struct {
	// Name is the node's metadata.name.
	Name string
	// GPUs are the configured GPU resources that the node offers, sorted by name.
	GPUs []ResourceUse
	// Pods is how many pods hold GPUs here or are expected, DaemonSet pods and
	// ending ones not counted.
	Pods int64
	// InFlight is how many GPUs are held for pods that were admitted but are not on
	// the node yet, of all the node's GPU resources.
	InFlight int64
	// Out says why no pod is steered to the node whatever it asks for, and is
	// NodeFeasible when nothing keeps it out.
	Out NodeReason
}

// Nodes returns the nodes that offer a configured GPU resource, sorted by name.
func (ix *Index) Nodes() []NodeUse {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	now := ix.now()
	ix.expire(now)
	inFlight := ix.inFlightByNode()
	var list []NodeUse
	for _, s := range ix.order {
		n := NodeUse{Name: s.name, InFlight: inFlight[s.name], Out: s.out()}
		for _, a := range s.allocatable {
			if a.value > 0 && ix.cfg.Resources.IsGPU(string(a.name)) {
				n.GPUs = append(n.GPUs, s.use(a.name))
				n.Pods = max(n.Pods, s.used.occupants.get(a.name))
			}
		}
		if len(n.GPUs) == 0 {
			continue
		}
		if until, ok := ix.backoffs.until[n.Name]; ok && now.Before(until) && n.Out == NodeFeasible {
			n.Out = NodeBackoff
		}
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b NodeUse) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// inFlightByNode sums up the GPUs of pods that are expected. Call under lock.
func (ix *Index) inFlightByNode() map[string]int64 {
	sum := map[string]int64{}
	count := func(node string, l load) {
		for _, r := range l.requests {
			if ix.cfg.Resources.IsGPU(string(r.name)) {
				sum[node] += r.value
			}
		}
	}
	for _, r := range ix.reservations {
		count(r.node, r.load)
	}
	for _, r := range ix.pods {
		if r.applied && r.owner != ownerBound {
			count(r.node, *r.load)
		}
	}
	return sum
}
