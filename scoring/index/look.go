package index

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
)

// Look returns the view of a decision that reserves nothing. Nothing in the index changes:
// what is over, and the held room that the query gives up, are taken away in the view
// alone, and a pool that there is not yet is made for the view alone, also for a pod that is
// pinned to one node if the query asks for all nodes. The error is that of View.
func (ix *Index) Look(ctx context.Context, q *Query) (View, error) {
	if err := ctx.Err(); err != nil {
		return View{}, err
	}
	if nodes.IsPinned(q.Pod) && !q.AllNodes {
		v, _, _ := ix.glance(q, false)
		return v, nil
	}
	q.kind = pool.KindOf(q.Pod, q.Demand)
	if v, _, kept := ix.glance(q, q.AllNodes); kept {
		return v, nil
	}
	mine, err := ix.turns.take(ctx, q.Namespace, want{look: q})
	if err != nil {
		return View{}, err
	}
	defer mine.end()
	v, gone, kept := ix.glance(q, true)
	if kept {
		return v, nil
	}
	return v, v.makePool(ctx, q, gone)
}

// glance returns the view with the pool that is kept for the query's kind, if it is as it
// should be, and else one without a pool, and what is to be taken away. All nodes are in it
// if that is asked for.
func (ix *Index) glance(q *Query, all bool) (v View, gone []charge, kept bool) {
	ix.mu.Lock()
	defer ix.unlock()
	now := ix.Now()
	v = ix.viewOf(q, now)
	if v.Key == nil {
		v.Ordering = pool.NewOrdering(ix.cfg.Ranking, ix.ledger.perGPU.Median())
	}
	gone = ix.goneAt(now)
	if r, ok := ix.reservations.byUID[v.UID]; ok && !now.Before(r.until) {
		v.Own = nil // it is among what is gone
	}
	if q.GiveUp {
		gone = append(gone, ix.replicas.inTheWay(q.Demand)...)
	}
	if all {
		v.All = slices.Clone(ix.usage.list)
	}
	known := ix.pools.ByKind[q.kind]
	v.Kept = known != nil
	if known == nil || known.Resting() || len(gone) > 0 {
		return v, gone, false
	}
	v.Pool = known.View()
	if v.Own != nil {
		v.setOwn(known, ix.usage.of(v.Own.Node))
	}
	return v, nil, true
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
func (v *View) makePool(ctx context.Context, q *Query, gone []charge) error {
	place := make(map[string]int, len(v.All))
	for i, s := range v.All {
		place[s.Name] = i
	}
	for _, c := range gone {
		if i, ok := place[c.Node]; ok {
			v.All[i] = v.All[i].Without(c.load)
		}
	}
	states := make([]*nodes.State, len(v.Latest))
	v.Latest = make(pool.Latest, len(v.Latest))
	for _, s := range v.All {
		states[s.Slot] = s
		v.Latest[s.Slot].Store(s)
	}
	p, err := pool.Make(ctx, q.kind, q.Pod, q.Demand, v.Ordering, states)
	if err != nil {
		return err
	}
	v.Pool = p.View()
	if v.Own == nil {
		return nil
	}
	if i, ok := place[v.Own.Node]; ok {
		v.setOwn(p, v.All[i])
	}
	return nil
}
