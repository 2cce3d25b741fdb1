package scoring

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Index keeps what is used on every node, from events of nodes, pods and
// namespaces in any order. Usage is kept by node name, so a pod may come before
// its node. All methods may be called from several goroutines.
type Index struct {
	cfg   config.Configuration
	rules *nodeRules
	now   func() time.Time
	// ownNamespace is where this process' pod and those of the other replicas are.
	ownNamespace string
	synced       atomic.Bool
	// texts and loads are those that many objects have in common.
	texts texts
	loads loads
	// lastEvent is when the watches last delivered something, in Unix
	// nanoseconds; 0: never.
	lastEvent atomic.Int64

	mu sync.Mutex // guards all below
	// states: node name -> the node, if it exists, and what is used on it.
	states map[string]*nodeState
	// order holds the states of nodes that exist, position their place in it.
	order    []*nodeState
	position map[string]int
	latest   latestStates
	// nodeOrder is nil when nodes came, went or moved since it was taken.
	nodeOrder *nodeOrder
	// pods: pod UID -> where it counts.
	pods map[types.UID]*podRecord
	// reservations: admission UID -> what a decision holds until its pod is seen.
	reservations map[types.UID]reservation
	expiries     expiries
	peers        peers
	// enabled: namespaces that opted in. targets: the records of each namespace
	// whose owner is the target.
	enabled map[string]bool
	targets map[string]map[*podRecord]struct{}
	// expected: node name -> the records whose owner is the target and whose node it
	// is, as they came.
	expected map[string][]*podRecord
	images   imageTable
	// cpuPerGPU and memoryPerGPU count the requests of GPU pods, per GPU.
	cpuPerGPU, memoryPerGPU histogram
	// pools: the nodes for each kind of pods seen lately, sorted by key, which
	// depends on unit. decisions counts decisions.
	pools     map[podKind]*pool
	key       keyFunc
	unit      companions
	unitSince time.Time
	decisions uint64
	// offered: how many nodes offer a resource.
	offered map[corev1.ResourceName]int
	// freeSlots are numbers below len(order)+len(freeSlots) that no node has.
	freeSlots []int
	// imagesShared is true while a reader may hold the image table.
	imagesShared bool
	backoffs     backoffs
	// waiting is how many steered pods are pending; landings says where the
	// others went.
	waiting  int
	landings map[Landing]int
	onLanded func(Landed)
	// unsteered is how many pods appeared without a decision of ours. seenPending are
	// all that have no node yet, each of which appears once.
	unsteered   int
	seenPending map[types.UID]struct{}
}

// podRecord is what is kept of a pod that counts somewhere, or may. A large cluster has
// 150,000, nearly all of them bound.
type podRecord struct {
	namespace string
	ownership
	// load is what the pod takes, nil until it counts somewhere; applied tells whether
	// it is charged now.
	load    *load
	applied bool
	// expires: there is an entry for the pod in expiries.
	expires bool
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

// NewIndex returns an empty index. The clock is for tests; nil means time.Now.
func NewIndex(cfg config.Configuration, now func() time.Time) (*Index, error) {
	rules, err := newNodeRules(cfg.Nodes)
	if err != nil {
		return nil, fmt.Errorf("nodes.excludeSelector: %w", err)
	}
	if now == nil {
		now = time.Now
	}
	return &Index{
		cfg:          cfg,
		rules:        rules,
		now:          now,
		states:       map[string]*nodeState{},
		position:     map[string]int{},
		pods:         map[types.UID]*podRecord{},
		reservations: map[types.UID]reservation{},
		enabled:      map[string]bool{},
		targets:      map[string]map[*podRecord]struct{}{},
		expected:     map[string][]*podRecord{},
		images:       imageTable{},
		landings:     map[Landing]int{},
		pools:        map[podKind]*pool{},
		offered:      map[corev1.ResourceName]int{},
		seenPending:  map[types.UID]struct{}{},
		peers:        peers{replicas: sets.New[types.UID]()},
		backoffs:     newBackoffs(cfg.Nodes.Backoff),
	}, nil
}

// SetOwnNamespace says in which namespace the pods of this webhook run, so that other
// replicas are known. Set it before the first event; empty, which is the default, means
// that only their decisions tell of them.
func (ix *Index) SetOwnNamespace(name string) { ix.ownNamespace = name }

// SetSynced says that all nodes, pods and namespaces that existed at the start
// are in the index. Before that, nothing is steered.
func (ix *Index) SetSynced() { ix.synced.Store(true) }

// Synced tells whether SetSynced was called.
func (ix *Index) Synced() bool { return ix.synced.Load() }

// SetNode adds or updates a node.
func (ix *Index) SetNode(object *corev1.Node) { ix.setNode(newNode(object, ix.rules, &ix.texts)) }

func (ix *Index) setNode(n *node) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	old := ix.states[n.name]
	if old == nil {
		old = &nodeState{}
	}
	if old.node != nil && (old.node == n || old.equal(n)) {
		return // a heartbeat
	}
	n = n.copy() // it may be one that the index had before the node was gone
	n.slot = ix.slotFor(old.node)
	ix.countImages(old.node, n)
	ix.put(n.name, &nodeState{node: n, used: old.used})
}

// DeleteNode removes a node. What its pods use stays until they go.
func (ix *Index) DeleteNode(name string) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.backoffs.forget(name)
	if old := ix.states[name]; old != nil {
		ix.countImages(old.node, nil)
		ix.put(name, &nodeState{used: old.used})
	}
}

// SetPod adds or updates a pod.
func (ix *Index) SetPod(pod *corev1.Pod) { ix.putPod(ix.newReducedPod(pod)) }

func (ix *Index) putPod(pod *reducedPod) {
	if landed := ix.setPod(pod); landed != nil && ix.onLanded != nil {
		ix.onLanded(*landed)
	}
}

func (ix *Index) setPod(pod *reducedPod) *Landed {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	now := ix.now()
	ix.expire(now)
	ix.noteRefusal(pod, now)
	ix.noteUnsteered(pod)
	ix.noteReplica(pod)
	record, known := ix.pods[pod.uid]
	own := !known && ix.reserved(pod)
	if !known {
		// The pod takes its request over from the reservation. Only when first
		// seen: a copy of the pod carries the same annotation.
		if pod.admission != "" {
			ix.release(pod.admission, pod.namespace)
		}
		record = &podRecord{namespace: pod.namespace}
	}
	before := record.expectation()
	landed := ix.track(record, pod, now)
	next := ix.ownershipOf(pod, record, now)
	if next.owner == ownerNone {
		ix.charge(record, next)
		delete(ix.pods, pod.uid)
		if record.waits() {
			ix.pods[pod.uid] = record
		}
		ix.moveUp(before)
		return landed
	}
	load := pod.load
	switch {
	case next.owner == ownerTarget && record.owner == ownerTarget && record.load.equal(*load):
		return landed // it still waits; where it is expected was decided when it came
	case next.owner == ownerTarget:
		if !known && ix.enabled[pod.namespace] {
			ix.seePending(pod, own, now)
		}
		ix.charge(record, ownership{})
		next.node = ix.expectedNode(pod.listed, next.node, *load)
		if ix.tooLarge(next.node, *load) {
			next = ownership{}
		}
	}
	if known && record.ownership == next && record.load != nil && record.load.equal(*load) {
		return landed // a change of status that moves no usage
	}
	ix.charge(record, ownership{})
	record.load = load
	ix.pods[pod.uid] = record
	ix.charge(record, next)
	if next.owner == ownerTarget {
		record.pending.listed = pod.listed
		ix.expirePod(pod.uid, record)
	} else {
		if before.node != next.node {
			ix.moveUp(before) // first: it may well be one of those that are too many there
		}
		ix.moveOn(next.node)
	}
	return landed
}

// DeletePod removes a pod.
func (ix *Index) DeletePod(uid types.UID) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	delete(ix.backoffs.pending, uid)
	delete(ix.seenPending, uid)
	ix.peers.replicas.Delete(uid)
	if record := ix.pods[uid]; record != nil {
		before := record.expectation()
		ix.endPending(record)
		ix.charge(record, ownership{})
		delete(ix.pods, uid)
		ix.moveUp(before)
	}
}

// SetNamespace says whether a namespace is opted in. Targets of pending pods
// count only there.
func (ix *Index) SetNamespace(name string, enabled bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.enabled[name] == enabled {
		return
	}
	if enabled {
		ix.enabled[name] = true
	} else {
		delete(ix.enabled, name)
	}
	for record := range ix.targets[name] {
		ix.charge(record, record.ownership)
	}
}

// IndexSize is how much an index holds.
type IndexSize struct {
	// Nodes that exist, pods that count somewhere or are waited for, and decisions
	// whose pod was not seen yet.
	Nodes, Pods, Reservations int
	// Waiting are steered pods that have no node yet.
	Waiting int
	// Backoff are nodes that are no candidates for a while, since they refused
	// GPU pods.
	Backoff int
	// Replicas are the webhook's own pods that are ready.
	Replicas int
}

// Size returns how much the index holds.
func (ix *Index) Size() IndexSize {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.expire(ix.now()) // nobody may have asked since
	return IndexSize{
		Nodes: len(ix.order), Pods: len(ix.pods), Reservations: len(ix.reservations),
		Waiting: ix.waiting, Backoff: ix.backoffs.inBackoff(ix.now()), Replicas: len(ix.peers.replicas),
	}
}

// unitAge is how long a unit of left-over CPU and memory stays at least. It only has
// to be roughly right; a median between two kinds of pods may move with every pod,
// and each new unit makes all pools anew.
const unitAge = time.Minute

// renewKey makes the packing order follow what a GPU's pod usually takes along.
// Call under lock.
func (ix *Index) renewKey(now time.Time) {
	if ix.key != nil && now.Sub(ix.unitSince) < unitAge {
		return
	}
	ix.unitSince = now
	if unit := companionsOf(&ix.cpuPerGPU, &ix.memoryPerGPU); unit != ix.unit {
		ix.unit, ix.key = unit, newKey(ix.cfg.Ranking, unit)
		clear(ix.pools)
	}
}
