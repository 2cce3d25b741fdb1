package scoring

import (
	"container/heap"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Between admission and binding a pod is invisible in the usage of nodes. So its
// request has, at any time, at most one owner:
//
//	            watch event                       watch event
//	reservation -----------> target / nominated -------------> bound
//	     |                        |                              |
//	     | TTL                    | age, unschedulable,          | terminal or
//	     v                        v no longer trusted            v deleted
//	    none                     none                           none
//
// The reservation lives in this process; everything to its right is read from
// the pod itself, so that all replicas and restarts agree.

// owner is who a pod's request is charged to.
type owner int

const (
	ownerNone owner = iota
	ownerTarget
	ownerNominated
	ownerBound
)

// charge is a load on a node.
type charge struct {
	node string
	load load
}

// reservation is a charge that ends at a time, unless its pod is seen before.
type reservation struct {
	charge
	// namespace of the pod: nobody releases the reservation of another.
	namespace string
	until     time.Time
	// calls is how many requests were decided under its UID.
	calls int
	// held is the room held for what other replicas decide in the meantime.
	held []*heldRoom
}

// ownership says where a pod of the API counts, and until when (zero: no limit).
type ownership struct {
	owner owner
	node  string
	until time.Time
}

// ownershipOf reads the owner of a pod's request from the pod: bound before
// nominated before target. A target counts only if it can be trusted, since
// anyone may write the annotation: a forged one must not fill a node. r is the pod's
// record, with when it began to wait.
func (ix *Index) ownershipOf(pod *reducedPod, r *podRecord, now time.Time) ownership {
	switch {
	case pod.over:
		return ownership{}
	case pod.nodeName != "":
		return ownership{owner: ownerBound, node: pod.nodeName}
	case pod.nominated != "":
		return ownership{owner: ownerNominated, node: pod.nominated}
	}
	until := r.pending.since.Add(ix.cfg.InFlight.TargetMaxAge.Duration)
	// The target annotation has to agree with the rest of the pod. Whether its
	// namespace is opted in is checked where the charge is applied, since that may
	// change.
	if pod.target == "" || !now.Before(until) || !pod.follows || !slices.Contains(pod.listed, pod.target) {
		return ownership{}
	}
	return ownership{owner: ownerTarget, node: pod.target, until: until}
}

// pendingSince is when a pod first seen now began to wait: at its creation, but
// while we watch, now, since another machine's clock says little about the age of
// a pod that was created a moment ago. Call under lock.
func (ix *Index) pendingSince(pod *reducedPod, now time.Time) time.Time {
	if created := time.Unix(pod.created, 0); !ix.Synced() && created.Before(now) {
		return created
	}
	return now
}

// tooLarge tells whether a node could not even take the pod if it were empty: a
// target that no decision of ours can have named. Call under lock.
func (ix *Index) tooLarge(node string, l load) bool {
	state := ix.states[node]
	return state != nil && state.node != nil && !hasRoom(&nodeState{node: state.node}, l.requests)
}

// followsTerms tells whether the scheduler can still follow a pending pod's terms.
func followsTerms(cfg config.Configuration, pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil &&
		pod.Labels[config.LabelEnabled] != "false" &&
		len(pod.Spec.SchedulingGates) == 0 &&
		ServedScheduler(cfg, pod.Spec.SchedulerName) &&
		!isUnschedulable(pod)
}

// ServedScheduler tells whether pods of that spec.schedulerName are steered.
func ServedScheduler(cfg config.Configuration, name string) bool {
	if name == "" {
		name = corev1.DefaultSchedulerName
	}
	for _, n := range cfg.SchedulerNames {
		if n == name {
			return true
		}
	}
	return false
}

func isUnschedulable(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// reserve charges a decision to its target until the pod is seen or the TTL is
// over. It returns false, and charges nothing, when the target no longer has
// room, because another decision took it since the decision looked. Call under lock.
func (ix *Index) reserve(d *Decision, request Request, demand *Demand, now time.Time) bool {
	if other, taken := ix.reservations[d.UID]; taken && other.namespace != request.Namespace {
		// Copies of one pod, with our annotation, in two namespaces at once: the
		// other was first. Decided again, this one goes by its own UID, which is
		// taken only if it did not come from an API server.
		return d.UID == request.UID
	}
	calls := ix.reservations[d.UID].calls
	ix.release(d.UID, request.Namespace) // a reinvocation replaces the pod's own reservation
	state := ix.states[d.Target()]
	if state == nil || !fits(state, demand) {
		return false
	}
	r := reservation{
		charge:    charge{node: d.Target(), load: demand.load(occupies)},
		namespace: request.Namespace,
		calls:     calls + 1,
		until:     now.Add(ix.cfg.InFlight.ReservationTTL.Duration),
	}
	ix.apply(1, r.charge)
	r.held = ix.hold(d, r.load)
	ix.reservations[d.UID] = r
	heap.Push(&ix.expiries, expiry{at: r.until, reservation: d.UID})
	return true
}

// release ends the reservation of a pod in that namespace, if there is one. Call
// under lock.
func (ix *Index) release(uid types.UID, namespace string) {
	if r, ok := ix.reservations[uid]; ok && r.namespace == namespace {
		delete(ix.reservations, uid)
		ix.apply(-1, r.charge)
		ix.giveUp(r.held...)
	}
}

// reserved tells whether a decision of this replica holds a reservation for the pod.
// Call under lock.
func (ix *Index) reserved(pod *reducedPod) bool {
	r, ok := ix.reservations[pod.admission]
	return ok && r.namespace == pod.namespace
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
func (e *expiries) Push(x any)        { *e = append(*e, x.(expiry)) }
func (e *expiries) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// expire ends what is over at now. Call under lock.
func (ix *Index) expire(now time.Time) {
	for len(ix.expiries) > 0 && !now.Before(ix.expiries[0].at) {
		e := heap.Pop(&ix.expiries).(expiry)
		if r, ok := ix.reservations[e.reservation]; ok && !now.Before(r.until) {
			ix.release(e.reservation, r.namespace)
		}
		if r := ix.pods[e.pod]; r != nil {
			r.expires = false
			if r.owner == ownerTarget && !now.Before(r.until) {
				ix.charge(r, ownership{})
			} else if r.owner == ownerTarget {
				ix.expirePod(e.pod, r)
			}
		}
	}
}

// expirePod makes sure that a target ends at its time. A pod has one entry at
// most, however often its state changes. Call under lock.
func (ix *Index) expirePod(uid types.UID, r *podRecord) {
	if !r.expires {
		r.expires = true
		heap.Push(&ix.expiries, expiry{at: r.until, pod: uid})
	}
}
