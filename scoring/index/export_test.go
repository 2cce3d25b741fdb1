package index

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
)

// What the tests of this room need to know of an index's inside.

// BurstDecisions and MaxPerDecision are what the tests count up to.
const (
	BurstDecisions = burstDecisions
	MostUnseen     = mostUnseen
	MaxRuns        = maxRuns
	MaxPerDecision = maxPerDecision
)

// Unsync makes the index one that was just started.
func (ix *Index) Unsync() { ix.synced.Store(false) }

// State returns what is used on a node, nil if nothing is known of it.
func (ix *Index) State(name string) *nodes.State {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.usage.states[name]
}

// TakeAway gives back what nobody took. The observers are told by whoever unlocks next.
func (ix *Index) TakeAway(node string, l demand.Load) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.usage.apply(-1, charge{Node: node, load: l})
}

// CheckSums checks that what is used on each node is what the index says is charged to
// it, and that this is never negative.
func (ix *Index) CheckSums() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.expire(ix.Now())
	want := ix.charged()
	for name, state := range ix.usage.states {
		if !state.Used.Equal(want[name]) {
			return fmt.Errorf("used on %s: %+v, but charged: %+v", name, state.Used, want[name])
		}
		delete(want, name)
		for _, all := range []demand.Amounts{state.Used.Requests, state.Used.Occupants, state.Used.Terminating} {
			for _, a := range all {
				if a.Value <= 0 {
					return fmt.Errorf("%d of %s used on %s", a.Value, a.Name, name)
				}
			}
		}
		if state.Used.Pods < 0 || state.Used.ScoringCPU < 0 || state.Used.ScoringMemory < 0 {
			return fmt.Errorf("negative usage on %s: %+v", name, state.Used)
		}
	}
	for name, l := range want {
		if l.Pods != 0 {
			return fmt.Errorf("%+v is charged to %s, which has no state", l, name)
		}
	}
	return nil
}

// charged sums up what is charged to each node.
func (ix *Index) charged() map[string]demand.Load {
	sum := map[string]demand.Load{}
	for _, r := range ix.ledger.pods {
		if r.applied {
			sum[r.node] = sum[r.node].Plus(1, *r.load)
		}
	}
	for _, r := range ix.reservations.byUID {
		sum[r.Node] = sum[r.Node].Plus(1, r.load)
	}
	for _, h := range ix.replicas.held {
		if h.charged && !h.over {
			sum[h.Node] = sum[h.Node].Plus(1, h.load)
		}
	}
	return sum
}

// Leaks returns how much there is of what comes and goes with the objects.
func (ix *Index) Leaks() map[string]int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	counts := 0 // of what GPU pods take along
	if !reflect.DeepEqual(ix.ledger.perGPU, &pool.PerGPU{GPUs: ix.cfg.Resources}) {
		counts = 1
	}
	return map[string]int{
		"turns": len(ix.turns.lines), "states": len(ix.usage.states), "positions": len(ix.usage.position), "expiries": len(ix.expiries),
		"targets": len(ix.ledger.targets), "expected": len(ix.ledger.expected), "images": len(ix.images.table),
		"CPU or memory counts": counts, "outcomes": len(ix.backoffs.nodes), "back-offs": len(ix.backoffs.held), "pending pods": len(ix.unsteered.seen),
	}
}

// PerGPU returns what a GPU's pod usually takes along.
func (ix *Index) PerGPU() nodes.Companions {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.ledger.perGPU.Median()
}

// Pools returns the pools, their order and what they are made of.
func (ix *Index) Pools() (pools map[pool.Kind]*pool.Pool, by pool.Ordering, states []*nodes.State, latest pool.Latest) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return maps.Clone(ix.pools.ByKind), ix.pools.Ordering, slices.Clone(ix.usage.list), ix.usage.latest
}

// Waiting is how many of each namespace wait for a turn or have it.
func (ix *Index) Waiting() map[string]int {
	ix.turns.mu.Lock()
	defer ix.turns.mu.Unlock()
	waiting := map[string]int{}
	for namespace, l := range ix.turns.lines {
		for _, n := range l.kinds {
			waiting[namespace] += n
		}
	}
	return waiting
}

// DescribePools is another text when a pool was made, dropped or asked for.
func (ix *Index) DescribePools() string {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return fmt.Sprintf("%+v", *ix.pools)
}

// SetReplicas makes the index assume so many replicas, this one among them, and so much
// outstanding, and forget all else that it assumes of others.
func (ix *Index) SetReplicas(ready, outstanding int) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	*ix.replicas = replicas{
		usage: ix.replicas.usage, maxTerms: ix.replicas.maxTerms, ready: replicasOf(ready), outstanding: outstanding,
	}
}

// replicasOf are so many ready pods of the webhook.
func replicasOf(n int) sets.Set[types.UID] {
	replicas := sets.New[types.UID]()
	for i := range n {
		replicas.Insert(types.UID(fmt.Sprint("replica-", i)))
	}
	return replicas
}

// Replicas returns the pods of the webhook that are ready.
func (ix *Index) Replicas() sets.Set[types.UID] {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.replicas.ready.Clone()
}

// BurstPods returns the pods of bursts, of this replica and of others.
func (ix *Index) BurstPods() (own, others float64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.replicas.own, ix.replicas.others
}

// Reservations returns how many there are, those that are over included.
func (ix *Index) Reservations() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return len(ix.reservations.byUID)
}

// Held returns for how many pods of others room is held.
func (ix *Index) Held() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return len(ix.replicas.held)
}

// PerDecision is how many decisions of others are assumed for one of our own, after so
// many pods of bursts.
func PerDecision(ready, own, others int) int {
	r := replicas{ready: replicasOf(ready)}
	for range own {
		r.noteBurst(true)
	}
	for range others {
		r.noteBurst(false)
	}
	return r.perDecision()
}

// Backoffs returns the ends of the back-offs that are not over, by scope and node.
func (ix *Index) Backoffs() map[string]time.Time {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	now, all := ix.clock.server(ix.Now()), map[string]time.Time{}
	for s, held := range ix.backoffs.held {
		for node, end := range held {
			if held.holds(node, now) {
				all[fmt.Sprint(s, node)] = end
			}
		}
	}
	return all
}

// CheckBackoffs checks that back-offs are what follows from the outcomes of the nodes that
// exist, and that these keep their bounds.
func (ix *Index) CheckBackoffs() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	count := 0
	for node, o := range ix.backoffs.nodes {
		if ix.usage.of(node) == nil {
			return fmt.Errorf("outcomes are kept of %s, which does not exist", node)
		}
		if len(o.refusals) > maxRefusals || len(o.rows) > maxRows || len(o.starts) > maxStarts {
			return fmt.Errorf("%d refusals, %d rows and %d starts are kept of %s", len(o.refusals), len(o.rows), len(o.starts), node)
		}
		for s, end := range o.backoffs(ix.backoffs.cfg) {
			held, there := ix.backoffs.held[s][node]
			if there && !held.Equal(end) || !there && end.After(ix.backoffs.swept) || !slices.Contains(o.scopes, s) {
				return fmt.Errorf("%s is in back-off of %v until %v, and it follows %v", node, s, held, end)
			}
			if there {
				count++
			}
		}
	}
	for _, held := range ix.backoffs.held {
		count -= len(held)
	}
	if count != 0 {
		return fmt.Errorf("%d back-offs follow from nothing", -count)
	}
	return nil
}

// UnseenRuns is of how many namespaces decisions are remembered whose pods did not come.
func (ix *Index) UnseenRuns() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return len(ix.unseen.runs)
}

// NodesNow returns the states that Occupancy copies under the lock.
func (ix *Index) NodesNow() []*nodes.State {
	states, _, _ := ix.nodesNow()
	return states
}

// ShortestList is how many nodes the pod on its way lists that lists fewest, 0 for none.
func (ix *Index) ShortestList() (least int) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, r := range ix.ledger.pods {
		if r.owner == ownerTarget && (least == 0 || len(r.pending.listed) < least) {
			least = len(r.pending.listed)
		}
	}
	return least
}
