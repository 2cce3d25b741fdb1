package index

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
)

// SetNode adds or updates a node.
func (ix *Index) SetNode(object *corev1.Node) { ix.PutNode(ix.ReduceNode(object)) }

// ReduceNode returns what is kept of a node. It does not change the index.
func (ix *Index) ReduceNode(object *corev1.Node) *nodes.Node {
	return ix.reducer.Node(object, ix.known(object.Name))
}

// known returns what the index has of a node, nil for nothing.
func (ix *Index) known(name string) *nodes.Node {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if s := ix.usage.of(name); s != nil {
		return s.Node
	}
	return nil
}

// PutNode is SetNode for a node that ReduceNode has returned.
func (ix *Index) PutNode(n *nodes.Node) {
	ix.mu.Lock()
	defer ix.unlock()
	if s := ix.usage.of(n.Name); s != nil && (s.Node == n || s.Node.Equal(n)) {
		return // a heartbeat
	}
	old := ix.usage.setNode(n)
	ix.backoffs.renew(n.Name, time.Unix(n.Created, 0), ix.clock.server(ix.Now()))
	ix.images.move(old, n)
}

// DeleteNode removes a node. What its pods use stays until they go.
func (ix *Index) DeleteNode(name string) {
	ix.mu.Lock()
	defer ix.unlock()
	ix.backoffs.forget(name)
	ix.images.move(ix.usage.removeNode(name), nil)
}

// SetPod adds or updates a pod.
func (ix *Index) SetPod(pod *corev1.Pod) { ix.PutPod(ix.ReducePod(pod)) }

// ReducePod returns what is kept of a pod. It does not change the index.
func (ix *Index) ReducePod(pod *corev1.Pod) *reduced.Pod { return ix.reducer.Pod(pod) }

// PutPod is SetPod for a pod that ReducePod has returned.
func (ix *Index) PutPod(pod *reduced.Pod) {
	ix.mu.Lock()
	defer ix.unlock()
	now := ix.Now()
	ix.expire(now)
	record, known := ix.ledger.pods[pod.UID]
	ix.noteFirst(pod, known, now)
	ix.unsteered.note(pod, ix.Synced() && ix.ledger.enabled[pod.Namespace])
	ix.replicas.note(pod)
	ix.noteOutcome(pod, ix.clock.server(now))
	own := false
	if !known {
		own = ix.takeOver(pod)
		record = &podRecord{namespace: pod.Namespace}
	}
	before := record.expectation()
	if landed := ix.landings.track(record, pod, ix.pendingSince(pod, now), now); landed != nil {
		ix.landed = append(ix.landed, *landed)
	}
	next := ix.ownershipOf(pod, record, now)
	switch next.owner {
	case ownerNone:
		ix.drop(pod.UID, record, before)
	case ownerTarget:
		if !known && ix.ledger.enabled[pod.Namespace] {
			ix.seePending(pod, own, now)
		}
		ix.expect(pod, record, next, before)
	default:
		ix.place(pod, record, next, before)
	}
}

// takeOver ends the reservation of a pod that is seen for the first time: from now on the
// pod itself says where it counts. Later it does not, since a copy of the pod carries the
// same annotation. It tells whether a decision of this replica held one.
func (ix *Index) takeOver(pod *reduced.Pod) (own bool) {
	if pod.Admission == "" {
		return false
	}
	own = ix.reservations.of(pod.Admission, pod.Namespace) != nil
	ix.reservations.release(pod.Admission, pod.Namespace)
	return own
}

// drop takes a pod from where it counts. A steered one is still waited for.
func (ix *Index) drop(uid types.UID, record *podRecord, before expectation) {
	ix.ledger.charge(record, ownership{})
	delete(ix.ledger.pods, uid)
	if record.waits() {
		ix.ledger.pods[uid] = record
	}
	ix.route.moveUp(before)
}

// expect counts a pod on its way where the scheduler will put it. While it waits that is
// not decided again.
func (ix *Index) expect(pod *reduced.Pod, record *podRecord, next ownership, before expectation) {
	if record.owner == ownerTarget && record.load.Equal(*pod.Load) {
		return
	}
	ix.ledger.charge(record, ownership{})
	next.node = ix.route.expectedNode(pod.Listed, next.node, *pod.Load)
	if !ix.usage.canEverHold(next.node, *pod.Load) {
		next = ownership{} // no decision of ours can have named that target
	}
	record.load = pod.Load
	ix.ledger.pods[pod.UID] = record
	ix.ledger.charge(record, next)
	if next.owner == ownerTarget {
		ix.ledger.setListed(record, pod.Listed, pod.ListedBytes)
		ix.expirePod(pod.UID, record)
	} else {
		ix.route.moveUp(before)
	}
}

// place counts a pod on the node that it is bound to or nominated for.
func (ix *Index) place(pod *reduced.Pod, record *podRecord, next ownership, before expectation) {
	if record.ownership == next && record.load != nil && record.load.Equal(*pod.Load) {
		return // a change of status that moves no usage
	}
	ix.ledger.charge(record, ownership{})
	record.load = pod.Load
	ix.ledger.pods[pod.UID] = record
	ix.ledger.charge(record, next)
	if before.node != next.node {
		ix.route.moveUp(before) // first: it may well be one of those that are too many there
	}
	ix.route.moveOn(next.node)
}

// DeletePod removes a pod.
func (ix *Index) DeletePod(uid types.UID) {
	ix.mu.Lock()
	defer ix.unlock()
	delete(ix.unsteered.seen, uid)
	ix.replicas.ready.Delete(uid)
	if record := ix.ledger.pods[uid]; record != nil {
		before := record.expectation()
		ix.landings.endPending(record)
		ix.ledger.charge(record, ownership{})
		delete(ix.ledger.pods, uid)
		ix.route.moveUp(before)
	}
}

// SetNamespace says whether a namespace is opted in. Targets of pending pods
// count only there.
func (ix *Index) SetNamespace(name string, enabled bool) {
	ix.mu.Lock()
	defer ix.unlock()
	ix.ledger.setNamespace(name, enabled)
	if !enabled {
		ix.unseen.end(name)
	}
}

// ownershipOf reads the owner of a pod's request from the pod: bound before
// nominated before target. A target counts only if it can be trusted, since
// anyone may write the annotation: a forged one must not fill a node. r is the pod's
// record, with when it began to wait.
func (ix *Index) ownershipOf(pod *reduced.Pod, r *podRecord, now time.Time) ownership {
	switch {
	case pod.Over:
		return ownership{}
	case pod.NodeName != "":
		return ownership{owner: ownerBound, node: pod.NodeName}
	case pod.Nominated != "":
		return ownership{owner: ownerNominated, node: pod.Nominated}
	}
	until := r.pending.since.Add(ix.cfg.InFlight.TargetMaxAge.Duration)
	// The target annotation has to agree with the rest of the pod. Whether its
	// namespace is opted in is checked where the charge is applied, since that may
	// change.
	if pod.Target == "" || !now.Before(until) || !pod.Follows || !slices.Contains(pod.Listed, pod.Target) {
		return ownership{}
	}
	return ownership{owner: ownerTarget, node: pod.Target, until: until}
}

// KeepNodes removes all other nodes.
func (ix *Index) KeepNodes(names sets.Set[string]) {
	ix.mu.Lock()
	gone := others(ix.usage.position, names)
	ix.mu.Unlock()
	for _, name := range gone {
		ix.DeleteNode(name)
	}
}

// KeepPods removes all other pods.
func (ix *Index) KeepPods(uids sets.Set[types.UID]) {
	ix.mu.Lock()
	gone := slices.Concat(others(ix.ledger.pods, uids), others(ix.unsteered.seen, uids), others(ix.replicas.ready, uids))
	ix.mu.Unlock()
	for _, uid := range gone { // some more than once, which changes nothing
		ix.DeletePod(uid)
	}
}

// KeepNamespaces removes all other namespaces.
func (ix *Index) KeepNamespaces(names sets.Set[string]) {
	ix.mu.Lock()
	gone := others(ix.ledger.enabled, names)
	ix.mu.Unlock()
	for _, name := range gone {
		ix.SetNamespace(name, false)
	}
}

// others returns the keys of a map that are not in a set.
func others[K comparable, V any](known map[K]V, kept sets.Set[K]) (gone []K) {
	for key := range known {
		if !kept.Has(key) {
			gone = append(gone, key)
		}
	}
	return gone
}

// NoteEvent notes that the watches deliver something.
func (ix *Index) NoteEvent() { ix.lastEvent.Store(ix.Now().UnixNano()) }

// LastEvent returns when the latest event of a node, pod or namespace came, zero
// before the first. Kubelets update their nodes every 5 minutes at least, so a
// cluster with nodes is never quiet for longer unless a watch is.
func (ix *Index) LastEvent() time.Time {
	if at := ix.lastEvent.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}
