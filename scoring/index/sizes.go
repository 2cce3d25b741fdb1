package index

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Nodes returns the nodes that offer a configured GPU resource, sorted by name.
func (ix *Index) Nodes() []nodes.Use {
	ix.mu.Lock()
	defer ix.unlock()
	now := ix.Now()
	ix.expire(now)
	inFlight := ix.inFlightByNode()
	backoff, server := ix.backoffs.everybodys(), ix.clock.server(now)
	var list []nodes.Use
	for _, s := range ix.usage.list {
		n := nodes.Use{Name: s.Name, InFlight: inFlight[s.Name], Out: s.Out()}
		for _, a := range s.Allocatable {
			if a.Value > 0 && ix.cfg.Resources.IsGPU(string(a.Name)) {
				n.GPUs = append(n.GPUs, s.Use(a.Name))
				n.Pods = max(n.Pods, s.Used.Occupants.Get(a.Name))
			}
		}
		if len(n.GPUs) == 0 {
			continue
		}
		if n.Out == nodes.Feasible && slices.ContainsFunc(n.GPUs, func(g nodes.ResourceUse) bool { return backoff[g.Name].holds(n.Name, server) }) {
			n.Out = nodes.Backoff
		}
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b nodes.Use) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// inFlightByNode sums up the GPUs of pods that are expected.
func (ix *Index) inFlightByNode() map[string]int64 {
	sum := map[string]int64{}
	count := func(node string, l demand.Load) {
		for _, r := range l.Requests {
			if ix.cfg.Resources.IsGPU(string(r.Name)) {
				sum[node] += r.Value
			}
		}
	}
	for _, r := range ix.reservations.byUID {
		count(r.Node, r.load)
	}
	for _, r := range ix.ledger.pods {
		if r.applied && r.owner != ownerBound {
			count(r.node, *r.load)
		}
	}
	return sum
}

// NodeCount is how many nodes there are.
func (ix *Index) NodeCount() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return len(ix.usage.list)
}

// Size is how much an index holds.
type Size struct {
	// Nodes that exist, pods that count somewhere or are waited for, and decisions
	// whose pod was not seen yet.
	Nodes, Pods, Reservations int
	// Waiting are steered pods that have no node yet.
	Waiting int
	// Backoff are nodes that are no candidates for a while, since they refused GPU pods;
	// NamespaceBackoff are those that are none for the pods of some namespaces only.
	Backoff, NamespaceBackoff int
	// Replicas are the webhook's own pods that are ready.
	Replicas int
}

// Size returns how much the index holds.
func (ix *Index) Size() Size {
	ix.mu.Lock()
	defer ix.unlock()
	now := ix.Now()
	ix.expire(now) // nobody may have asked since
	backoff, namespaceBackoff := ix.backoffs.count(ix.clock.server(now))
	return Size{
		Nodes: len(ix.usage.list), Pods: len(ix.ledger.pods), Reservations: len(ix.reservations.byUID),
		Waiting: ix.landings.waiting, Backoff: backoff, NamespaceBackoff: namespaceBackoff, Replicas: len(ix.replicas.ready),
	}
}

// Landings returns how many steered pods were seen to land where, since the
// start. Every replica sees all pods.
func (ix *Index) Landings() map[steering.Landing]int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return maps.Clone(ix.landings.counts)
}

// Negatives is how often, since the start, more was given back of a node than was taken.
// It is 0 unless there is a bug.
func (ix *Index) Negatives() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.usage.negatives
}

// Unsteered is how many GPU pods appeared in opted-in namespaces, since the start,
// that have no decision of ours although nothing in them speaks against one.
func (ix *Index) Unsteered() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.unsteered.count
}

// Occupancy returns the occupancy for each configured GPU resource that a node
// offers, sorted by name. It goes through all nodes, but holds the index's lock
// only to copy the list of their states, which never change.
func (ix *Index) Occupancy() []nodes.Occupancy {
	states, backoff, now := ix.nodesNow()
	return nodes.OccupancyOf(states, ix.cfg.Resources, func(s *nodes.State, gpu corev1.ResourceName) bool {
		return s.TakesPods() && !backoff[gpu].holds(s.Name, now)
	})
}

// nodesNow returns the states of the nodes that exist and the ends of back-offs for
// everybody, both for reading, and when that was by the API server's clock.
func (ix *Index) nodesNow() (states []*nodes.State, backoff map[corev1.ResourceName]ends, now time.Time) {
	ix.mu.Lock()
	size := len(ix.usage.list)
	ix.mu.Unlock()
	// Room for some that come in between, since allocating takes longer than copying.
	states = make([]*nodes.State, 0, size+size/8)
	ix.mu.Lock()
	defer ix.unlock()
	now = ix.Now()
	ix.expire(now)
	states = append(states, ix.usage.list...)
	for _, h := range ix.replicas.held {
		if at, ok := ix.usage.position[h.Node]; ok && h.charged && !h.over {
			states[at] = states[at].Without(h.load) // an assumption is no use
		}
	}
	return states, ix.backoffs.everybodys(), ix.clock.server(now)
}

// States returns the states of all nodes, in an order that changes only when nodes come or
// go, and the images that they have.
func (ix *Index) States() ([]*nodes.State, scheduler.Images) {
	ix.mu.Lock()
	defer ix.unlock()
	ix.expire(ix.Now())
	return slices.Clone(ix.usage.list), ix.images.lend()
}
