package scoring

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
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

// pools are those of the kinds of pods seen lately.
type pools struct {
	ranking config.Ranking
	byKind  map[podKind]*pool
	// key is the packing order, which depends on unit: what a GPU's pod usually takes
	// along, as it was at unitSince.
	key       keyFunc
	unit      companions
	unitSince time.Time
	// decisions counts how often a pool was asked for.
	decisions uint64
}

func newPools(cfg config.Ranking) *pools { return &pools{ranking: cfg, byKind: map[podKind]*pool{}} }

// update moves a node within the pools.
func (p *pools) update(old, next *nodeState) {
	for _, one := range p.byKind {
		one.update(old, next)
	}
}

// renewKey makes the packing order follow what a GPU's pod usually takes along.
func (p *pools) renewKey(now time.Time, unit companions) {
	if p.key != nil && now.Sub(p.unitSince) < unitAge {
		return
	}
	p.unitSince = now
	if unit != p.unit {
		p.unit, p.key = unit, newKey(p.ranking, unit)
		clear(p.byKind)
	}
}

// kindOf returns the kind of a pod.
func kindOf(pod *corev1.Pod, demand *Demand) podKind {
	gpu := demand.GPUs[0]
	return podKind{gpu: gpu.Name, count: gpu.Count, constraints: signature(pod)}
}

// get returns the pool for a pod, which it makes of the nodes if there is none.
func (p *pools) get(pod *corev1.Pod, demand *Demand, nodes []*nodeState) *pool {
	kind := kindOf(pod, demand)
	p.decisions++
	found := p.byKind[kind]
	if found == nil {
		if len(p.byKind) >= maxPools {
			p.drop()
		}
		found = poolOf(kind, pod, demand, p.key, nodes)
		p.byKind[kind] = found
	}
	found.used = p.decisions
	return found
}

// poolOf makes the pool of a kind, as which the pod is an example.
func poolOf(kind podKind, pod *corev1.Pod, demand *Demand, key keyFunc, nodes []*nodeState) *pool {
	// What else the pod asks for is not what its kind has in common.
	made := newPool(kind, newPodFilter(constraintsOf(pod), &Demand{GPUs: demand.GPUs[:1]}), key)
	for _, s := range nodes {
		made.join(s)
	}
	return made
}

// drop drops the one that was not used for longer of two picked at random: a pool in use
// is safe, and when kinds come in turn, one more than there may be pools, most still find
// theirs.
func (p *pools) drop() {
	var dropped *pool
	picked := 0
	for _, one := range p.byKind { // in random order
		if dropped == nil || one.used < dropped.used {
			dropped = one
		}
		if picked++; picked == 2 {
			break
		}
	}
	delete(p.byKind, dropped.kind)
}

// smallestWith returns the smallest pool of pods that ask for as many GPUs as the load
// and may go to all these nodes, nil if there is none.
func (p *pools) smallestWith(nodes []*nodeState, l load) (smallest *pool) {
	for kind, one := range p.byKind {
		if l.occupants.get(kind.gpu) > 0 && l.requests.get(kind.gpu) == kind.count && one.allEligible(nodes) &&
			(smallest == nil || one.stats.matching < smallest.stats.matching ||
				one.stats.matching == smallest.stats.matching && one.used > smallest.used) {
			smallest = one
		}
	}
	return smallest
}

// allEligible tells whether all these nodes exist and may take the pool's pods.
func (p *pool) allEligible(nodes []*nodeState) bool {
	for _, s := range nodes {
		if s == nil || !p.isEligible(s.node) {
			return false
		}
	}
	return true
}

// isEligible tells whether a node may take the pool's pods when it has room.
func (p *pool) isEligible(n *node) bool { return p.member(n)&eligible != 0 }
