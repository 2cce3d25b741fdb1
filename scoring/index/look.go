package index

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
)

// Look returns the view of a decision that reserves nothing. Nothing in the index changes:
// what is over, and the held room that the query gives up, are taken away in the view
// alone, and a pool that there is not yet is made for the view alone.
func (ix *Index) Look(q *Query) View {
	ix.mu.Lock()
	now, kind := ix.Now(), pool.KindOf(q.Pod, q.Demand)
	v := ix.viewOf(q, now)
	if v.Key == nil {
		v.Key = nodes.NewKey(ix.cfg.Ranking, ix.ledger.perGPU.Median())
	}
	gone, known := ix.goneAt(now), ix.pools.ByKind[kind]
	if r, ok := ix.reservations.byUID[v.UID]; ok && !now.Before(r.until) {
		v.Own = nil // it is among what is gone
	}
	if q.GiveUp {
		gone = append(gone, ix.replicas.inTheWay(q.Demand)...)
	}
	own := known == nil || len(gone) > 0
	if own || q.AllNodes {
		v.All = slices.Clone(ix.usage.list)
	}
	if !own {
		v.Pool = known.View()
		if v.Own != nil {
			v.setOwn(known, ix.usage.of(v.Own.Node))
		}
	}
	ix.unlock()
	if own {
		v.makePool(kind, q, gone)
	}
	return v
}

// goneAt returns what still counts, but is over at now.
func (ix *Index) goneAt(now time.Time) (gone []charge) {
	if len(ix.expiries) == 0 || now.Before(ix.expiries[0].at) {
		return nil
	}
	seen := sets.New[types.UID]() // what was reserved again has several entries
	for _, e := range ix.expiries {
		if r, ok := ix.reservations.byUID[e.reservation]; ok && !now.Before(r.until) && !seen.Has(e.reservation) {
			seen.Insert(e.reservation)
			gone = append(gone, r.charge)
			for _, h := range r.held {
				if h.charged && !h.over {
					gone = append(gone, h.charge)
				}
			}
		}
		if r := ix.ledger.pods[e.pod]; r != nil && r.owner == ownerTarget && r.applied && !now.Before(r.until) {
			gone = append(gone, charge{Node: r.node, load: *r.load})
		}
	}
	return gone
}

// makePool makes the pool of a view, of the states of all nodes without what is gone.
func (v *View) makePool(kind pool.Kind, q *Query, gone []charge) {
	place := make(map[string]int, len(v.All))
	v.Latest = make(pool.Latest, len(v.Latest))
	for i, s := range v.All {
		place[s.Name] = i
	}
	for _, c := range gone {
		if i, ok := place[c.Node]; ok {
			v.All[i] = v.All[i].Without(c.load)
		}
	}
	for _, s := range v.All {
		v.Latest[s.Slot].Store(s)
	}
	p := pool.Make(kind, q.Pod, q.Demand, v.Key, v.All)
	v.Pool = p.View()
	if v.Own == nil {
		return
	}
	if i, ok := place[v.Own.Node]; ok {
		v.setOwn(p, v.All[i])
	}
}
