package index

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
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
// The reservation lives in this process (see reservations.go); everything to its right
// is read from the pod itself, so that all replicas and restarts agree.

// owner is who a pod's request is charged to.
type owner int

const (
	ownerNone owner = iota
	ownerTarget
	ownerNominated
	ownerBound
)

// ownership says where a pod of the API counts, and until when (zero: no limit).
type ownership struct {
	owner owner
	node  string
	until time.Time
}

// podRecord is what is kept of a pod that counts somewhere, or may. A large cluster has
// 150,000, nearly all of them bound.
type podRecord struct {
	namespace string
	ownership
	// load is what the pod takes, nil until it counts somewhere; applied tells whether
	// it is charged now.
	load    *demand.Load
	applied bool
	// expires: there is an entry for the pod in expiries.
	expires bool
	// listedBytes is what pending.listed takes.
	listedBytes int32
	// pending is nil once the pod is bound.
	pending *pendingPod
}

// pendingPod is what is kept of a pod while it has no node.
type pendingPod struct {
	// listed are the nodes that the pod's terms list, while its owner is the target.
	listed []string
	// since is when it was first seen; steered: it counts as waiting.
	since   time.Time
	steered bool
}

// waits tells whether the pod is steered and has no node yet.
func (r *podRecord) waits() bool { return r.pending != nil && r.pending.steered }

// prefers tells whether a pod's list has one node before another.
func (r *podRecord) prefers(node, other string) bool {
	for _, name := range r.pending.listed {
		switch name {
		case node:
			return true
		case other:
			return false
		}
	}
	return false
}

// ledger says where each pod of the API counts, and charges it there.
type ledger struct {
	usage  *usage
	perGPU *pool.PerGPU
	// pods: pod UID -> where it counts.
	pods map[types.UID]*podRecord
	// enabled: namespaces that opted in. targets: the records of each namespace
	// whose owner is the target.
	enabled map[string]bool
	targets map[string]map[*podRecord]struct{}
	// expected: node name -> the records whose owner is the target and whose node it
	// is, as they came.
	expected expected
	// listedBytes is what the lists of all pods on their way take.
	listedBytes int
}

// MaxListedBytes bounds what the lists of all pods on their way take together. In a burst
// of 10,000 pods each lists 56 nodes, whose names they share: 9 MB. Lists of forged names,
// which are shared with nobody, would take 16 KiB for each pod of the last minute.
const MaxListedBytes = 16 << 20

func newLedger(u *usage, gpus config.Resources) *ledger {
	return &ledger{
		usage: u, perGPU: &pool.PerGPU{GPUs: gpus}, pods: map[types.UID]*podRecord{}, enabled: map[string]bool{},
		targets: map[string]map[*podRecord]struct{}{}, expected: expected{},
	}
}

// charge moves a record's load to where next says.
func (l *ledger) charge(r *podRecord, next ownership) {
	if r.applied {
		l.usage.apply(-1, charge{Node: r.node, load: *r.load})
		l.perGPU.Count(-1, *r.load)
	}
	if r.owner == ownerTarget {
		l.expected.remove(r)
	}
	if next.owner != ownerTarget {
		l.setListed(r, nil, 0)
	}
	r.ownership = next
	if r.owner == ownerTarget {
		l.expected.add(r)
	}
	l.indexTarget(r)
	r.applied = next.owner > ownerTarget || next.owner == ownerTarget && l.enabled[r.namespace]
	if r.applied {
		r.load = l.usage.countable(r.node, r.load, l.perGPU.GPUs)
		l.usage.apply(1, charge{Node: r.node, load: *r.load})
		l.perGPU.Count(1, *r.load)
	}
}

// setListed notes the nodes that the terms of a pod on its way list, and what they take:
// only its target when the lists of all such pods take too much.
func (l *ledger) setListed(r *podRecord, listed []string, bytes int) {
	l.listedBytes -= int(r.listedBytes)
	if bytes > 0 && l.listedBytes+bytes > MaxListedBytes {
		listed, bytes = []string{r.node}, nodes.TextHeader+len(r.node)
	}
	l.listedBytes += bytes
	r.listedBytes = int32(bytes)
	if r.pending != nil {
		r.pending.listed = listed
	}
}

// indexTarget keeps targets in step with a record's owner.
func (l *ledger) indexTarget(r *podRecord) {
	records := l.targets[r.namespace]
	if r.owner != ownerTarget {
		delete(records, r)
		if len(records) == 0 {
			delete(l.targets, r.namespace)
		}
		return
	}
	if records == nil {
		records = map[*podRecord]struct{}{}
		l.targets[r.namespace] = records
	}
	records[r] = struct{}{}
}

// setNamespace says whether a namespace is opted in. Targets of pending pods count only
// there.
func (l *ledger) setNamespace(name string, enabled bool) {
	if l.enabled[name] == enabled {
		return
	}
	if enabled {
		l.enabled[name] = true
	} else {
		delete(l.enabled, name)
	}
	for record := range l.targets[name] {
		l.charge(record, record.ownership)
	}
}
