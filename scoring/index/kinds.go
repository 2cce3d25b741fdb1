package index

import (
	"context"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
)

// A decision about a pod of a known kind finds the pool of the kind. For another kind a pool
// is made, without the lock, of the states of all nodes; then, with the lock, it catches up
// with what has changed meanwhile. Whether it is kept for the next pod of the kind or
// serves one decision only, the decision goes by it in the same way.

// catchUps is how often a pool that is far behind catches up without the lock before it does
// so with the lock. Each time takes a fraction of the time before, so that what is left
// after the last one is little.
const catchUps = 3

// withPool calls do, under the lock, with the pool of the query's kind, nil for a pod that
// is pinned to one node: each such pod would be a kind of its own. A query may come several
// times. The error is that of the context, or says that too many pods of the namespace wait.
func (ix *Index) withPool(ctx context.Context, q *Query, do func(*pool.Pool)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if nodes.IsPinned(q.Pod) {
		ix.mu.Lock()
		defer ix.unlock()
		ix.tidy()
		do(nil)
		return nil
	}
	if q.kind == (pool.Kind{}) {
		q.kind = pool.KindOf(q.Pod, q.Demand)
	}
	switch {
	case ix.withKept(q, do):
		return nil
	case q.own != nil:
		ix.lockCaughtUp(q)
		defer ix.unlock()
		do(q.own)
		return nil
	}
	return ix.withNew(ctx, q, do)
}

// tidy ends what is over and makes the order of the pools follow, and returns the time.
func (ix *Index) tidy() time.Time {
	now := ix.Now()
	ix.expire(now)
	ix.pools.RenewKey(now, ix.ledger.perGPU.Median)
	return now
}

// withKept is withPool if there is the pool, else it does nothing and returns false.
func (ix *Index) withKept(q *Query, do func(*pool.Pool)) bool {
	ix.mu.Lock()
	defer ix.unlock()
	now := ix.tidy()
	kept := ix.pools.Kept(q.kind, q.Namespace, now, ix.usage.latest)
	if kept == nil {
		return false
	}
	if q.GiveUp {
		ix.replicas.giveUpFor(kept, q.Demand)
	}
	do(kept)
	return true
}

// withNew is withPool for a kind that has no pool.
func (ix *Index) withNew(ctx context.Context, q *Query, do func(*pool.Pool)) error {
	mine, err := ix.turns.take(ctx, q.Namespace, want{kind: q.kind})
	if err != nil {
		return err
	}
	defer mine.end()
	if ix.withKept(q, do) { // somebody else made it meanwhile
		return nil
	}
	wanted := mine.wanted()
	keep, err := ix.makeOwn(ctx, q, wanted)
	if err != nil {
		return err
	}
	ix.lockCaughtUp(q)
	defer ix.unlock()
	if made := q.own; keep && ix.pools.Keep(made, q.Namespace, wanted, ix.Now()) {
		q.own = nil
		do(made)
		return nil
	}
	ix.scanned++
	do(q.own)
	return nil
}

// makeOwn gives the query a pool of its own: one that rests and is far behind, or a new one,
// which it makes. It tells whether the pool is to be kept.
func (ix *Index) makeOwn(ctx context.Context, q *Query, wanted bool) (keep bool, err error) {
	states := ix.roomForStates()
	ix.mu.Lock()
	now := ix.tidy()
	q.own = ix.pools.TakeResting(q.kind)
	keep = ix.pools.HasRoom(q.Namespace, wanted, now)
	states, by := ix.usage.latest.AppendTo(states), ix.pools.Ordering
	ix.unlock()
	if q.own != nil {
		return keep, nil
	}
	q.own, err = pool.Make(ctx, q.kind, q.Pod, q.Demand, by, states)
	if keep && err == nil {
		q.own.MakeTrees()
	}
	return keep, err
}

// roomForStates returns an empty list with room for all nodes, and for some that come in
// between, since allocating takes longer than copying.
func (ix *Index) roomForStates() []*nodes.State {
	ix.mu.Lock()
	slots := len(ix.usage.latest)
	ix.mu.Unlock()
	return make([]*nodes.State, 0, slots+slots/8)
}

// lockCaughtUp takes the lock when the query's own pool is what it would be if it had been
// kept all the time, or has only little left to catch up with, which it does then.
func (ix *Index) lockCaughtUp(q *Query) {
	for left := catchUps; ; left-- {
		states := ix.roomForStates()
		ix.mu.Lock()
		ix.tidy()
		states = ix.usage.latest.AppendTo(states)
		if left == 0 || q.own.Behind(states) <= pool.MaxBehind {
			q.own.CatchUp(states)
			break
		}
		ix.unlock()
		q.own.CatchUp(states)
	}
	if q.GiveUp && len(ix.replicas.held) > 0 {
		ix.replicas.giveUpFor(q.own, q.Demand)
		q.own.CatchUp(ix.usage.latest.AppendTo(nil))
	}
}

// Scanned is how many decisions, since the start, went through all nodes for a pool that was
// not kept, since the pod's namespace had its share of pools.
func (ix *Index) Scanned() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.scanned
}
