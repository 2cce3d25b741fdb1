package index

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Reservation is what a decision wants to hold for its pod.
type Reservation struct {
	// UID is the one that the pod will carry; Request is the UID of the admission
	// request, which is another one when the pod came before.
	UID, Request types.UID
	// Namespace is the pod's.
	Namespace string
	// Listed are the nodes that the pod's terms list, by falling weight. The first one
	// is the target. None ends what was reserved for the pod.
	Listed []string
	// Demand is what the pod asks for.
	Demand *demand.Demand
}

// reservation is a charge that ends at a time, unless its pod is seen before.
type reservation struct {
	charge
	// namespace of the pod: nobody releases the reservation of another.
	namespace string
	until     time.Time
	// decided is when, by the API server's clock.
	decided time.Time
	// calls is how many requests were decided under its UID.
	calls int
	// held is the room held for what other replicas decide in the meantime.
	held []*heldRoom
}

// maxCalls is how often the API server calls a webhook for one pod: once, and
// once more if a later webhook has changed the pod (reinvocationPolicy IfNeeded).
const maxCalls = 2

// reservations are what decisions hold until their pods are seen.
type reservations struct {
	usage    *usage
	replicas *replicas
	// byUID: admission UID -> the reservation.
	byUID map[types.UID]reservation
}

func newReservations(u *usage, r *replicas) *reservations {
	return &reservations{usage: u, replicas: r, byUID: map[types.UID]reservation{}}
}

// uidOf returns the UID under which a pod is decided about: that of its first request,
// if it is the pod of that one and not a copy. The API server calls a webhook at most
// twice for a pod, so a third call within the life of a reservation comes from a copy, of
// a template that carries our annotations, say; the copies must not all share one
// reservation.
func (r *reservations) uidOf(q *Query) types.UID {
	if q.FirstUID == "" || len(q.FirstUID) > steering.MaxUIDLength {
		return q.UID
	}
	own, ok := r.byUID[q.FirstUID]
	if !ok || own.namespace == q.Namespace && own.calls < maxCalls {
		return q.FirstUID
	}
	return q.UID
}

// of returns the charge that is held for the pod with that UID, nil for none.
func (r *reservations) of(uid types.UID, namespace string) *charge {
	if own, ok := r.byUID[uid]; ok && own.namespace == namespace {
		return &own.charge
	}
	return nil
}

// add charges a decision to its target until then. decided is the present time by the API
// server's clock. It returns false, and charges nothing, when the target no longer has
// room, because another decision took it since the decision looked.
func (r *reservations) add(want *Reservation, decided, until time.Time, examinesAll bool) bool {
	calls := r.byUID[want.UID].calls
	if !r.free(want) {
		return false
	}
	added := reservation{
		charge:    charge{Node: want.Listed[0], load: want.Demand.Load(demand.Occupies)},
		namespace: want.Namespace, calls: calls + 1, decided: decided, until: until,
	}
	r.usage.apply(1, added.charge)
	added.held = r.replicas.hold(want.Listed, added.load, examinesAll)
	r.byUID[want.UID] = added
	return true
}

// free ends what is reserved for the pod of a decision, which a reinvocation replaces, and
// tells whether the target has room for it.
func (r *reservations) free(want *Reservation) bool {
	r.release(want.UID, want.Namespace)
	s := r.usage.of(want.Listed[0])
	return s != nil && nodes.Fits(s, want.Demand)
}

// isTaken tells whether a pod of another namespace has a reservation under that UID:
// copies of one pod, with our annotation, in two namespaces at once.
func (r *reservations) isTaken(uid types.UID, namespace string) bool {
	other, taken := r.byUID[uid]
	return taken && other.namespace != namespace
}

// release ends the reservation of a pod in that namespace, if there is one.
func (r *reservations) release(uid types.UID, namespace string) {
	if own, ok := r.byUID[uid]; ok && own.namespace == namespace {
		delete(r.byUID, uid)
		r.usage.apply(-1, own.charge)
		r.replicas.giveUp(own.held...)
	}
}

// expire ends a reservation whose time is over, and returns it.
func (r *reservations) expire(uid types.UID, now time.Time) (own reservation, ended bool) {
	own, ok := r.byUID[uid]
	if !ok || now.Before(own.until) {
		return reservation{}, false
	}
	r.release(uid, own.namespace)
	return own, true
}

// expiry is the end of a reservation, or of the time a pod's target counts.
type expiry struct {
	at          time.Time
	reservation types.UID
	pod         types.UID
}

// expiries is a heap, soonest first.
type expiries []expiry

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e expiries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *expiries) Push(x any) { *e = append(*e, x.(expiry)) }

// Pop implements heap.Interface.
func (e *expiries) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// add notes an end.
func (e *expiries) add(one expiry) { heap.Push(e, one) }

// next takes one out that is over at now, if there is any.
func (e *expiries) next(now time.Time) (one expiry, over bool) {
	if len(*e) == 0 || now.Before((*e)[0].at) {
		return expiry{}, false
	}
	return heap.Pop(e).(expiry), true
}
