package index

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

// Query is a pod that somebody decides about.
type Query struct {
	// Pod is the pod without our parts, Demand what it asks for.
	Pod    *corev1.Pod
	Demand *demand.Demand
	// Namespace is the namespace of the request.
	Namespace string
	// UID identifies the admission request, FirstUID the one that an earlier answer of
	// ours put on the pod.
	UID, FirstUID types.UID
	// GiveUp ends the holding of room for other replicas where the pod could go.
	GiveUp bool
	// AllNodes asks for a view with the states of all nodes.
	AllNodes bool
	// kind is the pod's; own is the pool that was made for it and not kept.
	kind pool.Kind
	own  *pool.Pool
}

// View is what one decision looks at. It stays as it is whatever happens next, except
// for Latest.
type View struct {
	// UID is the one under which the pod is decided about.
	UID types.UID
	// Pool are the nodes that the pod may go to; it is empty for a pod that is pinned to
	// one node, since each such pod would be a kind of its own. Ordering is their order.
	// Own is the pod's own reservation, if it has one, which does not count against it;
	// OwnState is its node without it, nil if the pod may not go there.
	Pool pool.View
	pool.Ordering
	Latest   pool.Latest
	Own      *charge
	OwnState *nodes.State
	// Nodes is how many there are, candidates or not; All are their states, if the
	// query asked for them or the view needed them.
	Nodes  int
	All    []*nodes.State
	Images scheduler.Images
	// NodeOrder is the scheduler's, as far as it can be told.
	NodeOrder *scheduler.Order
	// backoff are the back-offs that the pod comes under, nearly always none, and now is
	// when the view was made; both by the API server's clock.
	backoff []lent
	now     time.Time
	// Kept: the index keeps a pool for pods of this kind.
	Kept bool
	// Held: room is held for what other replicas may have decided.
	Held bool
	// UnknownResource: nodes offer the pod's GPUs, but none offers some other
	// extended resource that it asks for as well.
	UnknownResource bool
}

// InBackoff tells whether a node is no candidate for now.
func (v *View) InBackoff(name string) bool {
	_, held := v.BackoffRule(name)
	return held
}

// BackoffRule says by which rule a node is no candidate for now, if it is none.
func (v *View) BackoffRule(name string) (rule Rule, held bool) {
	for i := range v.backoff {
		if v.backoff[i].holds(name, v.now) {
			return v.backoff[i].rule, true
		}
	}
	return Rule{}, false
}

// View returns what a decision looks at after which room is reserved. The error is that of
// the context, or says that too many pods of the namespace wait for a view.
func (ix *Index) View(ctx context.Context, q *Query) (v View, err error) {
	err = ix.withPool(ctx, q, func(p *pool.Pool) { v = ix.view(q, p) })
	return v, err
}

// Reserve makes the reservations say what a decision says. It returns false when the
// target was taken meanwhile, and an error when the context is over: then the pod is
// admitted without us, and nothing is reserved for it.
func (ix *Index) Reserve(ctx context.Context, r *Reservation) (bool, error) {
	ix.mu.Lock()
	defer ix.unlock()
	return ix.reserve(ctx, r)
}

// ReserveLocked decides and reserves while nobody else can. decide must not call methods
// of the index. The error is that of View.
func (ix *Index) ReserveLocked(ctx context.Context, q *Query, decide func(*View) *Reservation) error {
	var late error
	err := ix.withPool(ctx, q, func(p *pool.Pool) {
		v := ix.view(q, p)
		_, late = ix.reserve(ctx, decide(&v))
	})
	return cmp.Or(err, late)
}

// view returns a view of a pool, which is nil for a pod that is pinned to one node.
func (ix *Index) view(q *Query, p *pool.Pool) View {
	v := ix.viewOf(q, ix.Now())
	if p == nil {
		return v
	}
	v.Pool, v.Ordering, v.Kept = p.View(), p.Ordering, p != q.own
	if v.Own != nil {
		v.setOwn(p, ix.usage.of(v.Own.Node))
	}
	return v
}

// setOwn notes the state of the node on which the pod has room, nil for one that is gone.
func (v *View) setOwn(p *pool.Pool, s *nodes.State) {
	if s != nil && p.IsEligible(s.Node) {
		v.OwnState = s.Without(v.Own.load)
	}
}

// viewOf returns a view without a pool.
func (ix *Index) viewOf(q *Query, now time.Time) View {
	v := View{
		now: ix.clock.server(now), Ordering: ix.pools.Ordering, Latest: ix.usage.latest, Nodes: len(ix.usage.list), Images: ix.images.lend(),
		NodeOrder: ix.usage.nodeOrder(), backoff: ix.backoffs.of(q.Namespace, q.Demand), Held: len(ix.replicas.held) > 0,
		UnknownResource: ix.usage.asksForUnknown(q.Demand),
	}
	v.UID = ix.reservations.uidOf(q)
	v.Own = ix.reservations.of(v.UID, q.Namespace)
	return v
}

func (ix *Index) reserve(ctx context.Context, r *Reservation) (bool, error) {
	if ctx.Err() != nil {
		ix.reservations.release(r.UID, r.Namespace)
		return false, ctx.Err()
	}
	if len(r.Listed) == 0 {
		ix.reservations.release(r.UID, r.Namespace)
		return true, nil
	}
	if ix.reservations.isTaken(r.UID, r.Namespace) {
		// The other copy was first. Decided again, this one goes by its own UID, which
		// is taken only if it did not come from an API server.
		return r.UID == r.Request, nil
	}
	if ix.unseen.stops(r.Namespace, ix.clock.newest) {
		return ix.reservations.free(r), nil
	}
	now := ix.Now()
	until := now.Add(ix.cfg.InFlight.ReservationTTL.Duration)
	if !ix.reservations.add(r, ix.clock.server(now), until, ix.allExamined()) {
		return false, nil
	}
	ix.expiries.add(expiry{at: until, reservation: r.UID})
	return true, nil
}
