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

// MaxPools bounds the memory of pools: 112 bytes per node in each at most, which is
// 108 MB at 15,000 nodes, and the work of an event.
const MaxPools = 64

// unitAge is how long a unit of left-over CPU and memory stays at least. It only has
// to be roughly right; a median between two kinds of pods may move with every pod,
// and each new unit makes all pools anew.
const unitAge = time.Minute

// Pools are those of the kinds of pods seen lately.
type Pools struct {
	ranking config.Ranking
	ByKind  map[Kind]*Pool
	// Ordering is that of all pools, as it was at unitSince.
	Ordering
	unitSince time.Time
	// decisions counts how often a pool was asked for.
	decisions uint64
	// rested is when a pool was last sought that may go to rest.
	rested time.Time
}

// Ordering is the packing order of pools.
type Ordering struct {
	// Key is a node's place, which depends on unit: what a GPU's pod usually takes along.
	Key  nodes.KeyFunc
	unit nodes.Companions
}

// NewOrdering returns the configured order with a unit.
func NewOrdering(cfg config.Ranking, unit nodes.Companions) Ordering {
	return Ordering{Key: nodes.NewKey(cfg, unit), unit: unit}
}

// New returns no pools yet, for a configured order.
func New(cfg config.Ranking) *Pools { return &Pools{ranking: cfg, ByKind: map[Kind]*Pool{}} }

// Update moves a node within the pools.
func (p *Pools) Update(old, next *nodes.State) {
	for _, one := range p.ByKind {
		if !one.Resting() {
			one.update(old, next)
		}
	}
}

// RenewKey makes the packing order follow what a GPU's pod usually takes along.
func (p *Pools) RenewKey(now time.Time, usual func() nodes.Companions) {
	if p.Key != nil && now.Sub(p.unitSince) < unitAge {
		return
	}
	p.unitSince = now
	if unit := usual(); unit != p.unit {
		p.Ordering = NewOrdering(p.ranking, unit)
		clear(p.ByKind)
	}
}

// KindOf returns the kind of a pod.
func KindOf(pod *corev1.Pod, d *demand.Demand) Kind {
	gpu := d.GPUs[0]
	return Kind{gpu: gpu.Name, count: gpu.Count, constraints: nodes.Signature(pod)}
}

// Kept returns the pool of a kind, with the latest states, and notes that a namespace uses
// it. It is nil if there is none, or none that is not far behind.
func (p *Pools) Kept(kind Kind, namespace string, now time.Time, latest Latest) *Pool {
	defer p.rest(now, latest) // afterwards, so that the pool that is asked for does not go to rest
	found := p.ByKind[kind]
	if found == nil || found.Resting() && !found.wake(latest) {
		return nil
	}
	p.note(found, namespace, now)
	return found
}

func (p *Pools) note(used *Pool, namespace string, now time.Time) {
	p.decisions++
	used.used, used.usedAt, used.namespace = p.decisions, now, namespace
}

// SmallestWith returns the smallest pool that follows events and is of pods that ask for as many GPUs as the load
// and may go to all these nodes, nil if there is none.
func (p *Pools) SmallestWith(states []*nodes.State, l demand.Load) (smallest *Pool) {
	for kind, one := range p.ByKind {
		if !one.Resting() && l.Occupants.Get(kind.gpu) > 0 && l.Requests.Get(kind.gpu) == kind.count && one.allEligible(states) &&
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
