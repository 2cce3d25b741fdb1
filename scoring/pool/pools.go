package pool

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// A decision must not look at every node of a large cluster. So the index keeps,
// for each kind of pods that it has seen lately, the nodes that such pods may go
// to, sorted by packing order: a pool. Pods of one kind ask for the same number of
// the same GPU and have the same node constraints; there are a few kinds in a
// cluster, and many pods of each. An event moves its node within the pools, and a
// decision reads the first nodes of one.

// maxPools bounds the memory of pools: 80 bytes per node in each, which is about
// 80 MB at 15,000 nodes, and the work of an event.
const maxPools = 64

// unitAge is how long a unit of left-over CPU and memory stays at least. It only has
// to be roughly right; a median between two kinds of pods may move with every pod,
// and each new unit makes all pools anew.
const unitAge = time.Minute

// Pools are those of the kinds of pods seen lately.
type Pools struct {
	ranking config.Ranking
	ByKind  map[Kind]*Pool
	// Key is the packing order, which depends on unit: what a GPU's pod usually takes
	// along, as it was at unitSince.
	Key       nodes.KeyFunc
	unit      nodes.Companions
	unitSince time.Time
	// decisions counts how often a pool was asked for.
	decisions uint64
}

// New returns no pools yet, for a configured order.
func New(cfg config.Ranking) *Pools { return &Pools{ranking: cfg, ByKind: map[Kind]*Pool{}} }

// Update moves a node within the pools.
func (p *Pools) Update(old, next *nodes.State) {
	for _, one := range p.ByKind {
		one.update(old, next)
	}
}

// RenewKey makes the packing order follow what a GPU's pod usually takes along.
func (p *Pools) RenewKey(now time.Time, usual func() nodes.Companions) {
	if p.Key != nil && now.Sub(p.unitSince) < unitAge {
		return
	}
	p.unitSince = now
	if unit := usual(); unit != p.unit {
		p.unit, p.Key = unit, nodes.NewKey(p.ranking, unit)
		clear(p.ByKind)
	}
}

// KindOf returns the kind of a pod.
func KindOf(pod *corev1.Pod, d *demand.Demand) Kind {
	gpu := d.GPUs[0]
	return Kind{gpu: gpu.Name, count: gpu.Count, constraints: nodes.Signature(pod)}
}

// Get returns the pool for a pod, which it makes of the nodes if there is none.
func (p *Pools) Get(pod *corev1.Pod, d *demand.Demand, states []*nodes.State) *Pool {
	kind := KindOf(pod, d)
	p.decisions++
	found := p.ByKind[kind]
	if found == nil {
		if len(p.ByKind) >= maxPools {
			p.drop()
		}
		found = Make(kind, pod, d, p.Key, states)
		p.ByKind[kind] = found
	}
	found.used = p.decisions
	return found
}

// Make makes the pool of a kind, of which the pod is an example.
func Make(kind Kind, pod *corev1.Pod, d *demand.Demand, key nodes.KeyFunc, states []*nodes.State) *Pool {
	// What else the pod asks for is not what its kind has in common.
	made := newPool(kind, nodes.NewFilter(nodes.ConstraintsOf(pod), &demand.Demand{GPUs: d.GPUs[:1]}), key)
	for _, s := range states {
		made.join(s)
	}
	return made
}

// drop drops the one that was not used for longer of two picked at random: a pool in use
// is safe, and when kinds come in turn, one more than there may be pools, most still find
// theirs.
func (p *Pools) drop() {
	var dropped *Pool
	picked := 0
	for _, one := range p.ByKind { // in random order
		if dropped == nil || one.used < dropped.used {
			dropped = one
		}
		if picked++; picked == 2 {
			break
		}
	}
	delete(p.ByKind, dropped.kind)
}

// SmallestWith returns the smallest pool of pods that ask for as many GPUs as the load
// and may go to all these nodes, nil if there is none.
func (p *Pools) SmallestWith(states []*nodes.State, l demand.Load) (smallest *Pool) {
	for kind, one := range p.ByKind {
		if l.Occupants.Get(kind.gpu) > 0 && l.Requests.Get(kind.gpu) == kind.count && one.allEligible(states) &&
			(smallest == nil || one.stats.Matching < smallest.stats.Matching ||
				one.stats.Matching == smallest.stats.Matching && one.used > smallest.used) {
			smallest = one
		}
	}
	return smallest
}

// allEligible tells whether all these nodes exist and may take the pool's pods.
func (p *Pool) allEligible(states []*nodes.State) bool {
	for _, s := range states {
		if s == nil || !p.IsEligible(s.Node) {
			return false
		}
	}
	return true
}

// IsEligible tells whether a node may take the pool's pods when it has room.
func (p *Pool) IsEligible(n *nodes.Node) bool { return p.member(n)&eligible != 0 }
