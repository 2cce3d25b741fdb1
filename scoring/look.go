package scoring

import (
	"slices"
	"time"
)

// Look returns the view of a decision that reserves nothing. Nothing in the index changes:
// what is over, and the held room that the query gives up, are taken away in the view
// alone, and a pool that there is not yet is made for the view alone.
func (ix *Index) Look(q *Query) View {
	ix.mu.Lock()
	now, kind := ix.now(), kindOf(q.Pod, q.Demand)
	v := ix.viewOf(q, now)
	if v.key == nil {
		v.key = newKey(ix.cfg.Ranking, ix.ledger.perGPU.median())
	}
	gone, known := ix.goneAt(now), ix.pools.byKind[kind]
	if q.GiveUp {
		gone = append(gone, ix.replicas.inTheWay(q.Demand)...)
	}
	own := known == nil || len(gone) > 0
	if own || q.AllNodes {
		v.all = slices.Clone(ix.usage.list)
	}
	if !own {
		v.pool = known.view()
		if v.own != nil {
			v.setOwn(known, ix.usage.of(v.own.node))
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
	for _, e := range ix.expiries {
		if r, ok := ix.reservations.byUID[e.reservation]; ok && !now.Before(r.until) {
			gone = append(gone, r.charge)
			for _, h := range r.held {
				if h.charged && !h.over {
					gone = append(gone, h.charge)
				}
			}
		}
		if r := ix.ledger.pods[e.pod]; r != nil && r.owner == ownerTarget && r.applied && !now.Before(r.until) {
			gone = append(gone, charge{node: r.node, load: *r.load})
		}
	}
	return gone
}

// makePool makes the pool of a view, of the states of all nodes without what is gone.
func (v *View) makePool(kind podKind, q *Query, gone []charge) {
	place := make(map[string]int, len(v.all))
	v.latest = make(latestStates, len(v.latest))
	for i, s := range v.all {
		place[s.name] = i
	}
	for _, c := range gone {
		if i, ok := place[c.node]; ok {
			v.all[i] = v.all[i].without(c.load)
		}
	}
	for _, s := range v.all {
		v.latest[s.slot].Store(s)
	}
	p := poolOf(kind, q.Pod, q.Demand, v.key, v.all)
	v.pool = p.view()
	if v.own == nil {
		return
	}
	if i, ok := place[v.own.node]; ok {
		v.setOwn(p, v.all[i])
	}
}
