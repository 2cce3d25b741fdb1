package index

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Index keeps what is used on every node, from events of nodes, pods and
// namespaces in any order. It is made of parts that know nothing of locks: its exported
// methods take the one lock around all of them, its other methods and those of the parts
// are called under it. All exported methods may be called from several goroutines.
type Index struct {
	cfg       config.Configuration
	Now       func() time.Time
	observers Observers
	synced    atomic.Bool
	// lastEvent is when the watches last delivered something, in Unix
	// nanoseconds; 0: never.
	lastEvent atomic.Int64
	// reducer has locks of its own, since objects are reduced before the index is locked.
	reducer *reduced.Reducer
	// turns are those of decisions whose kind of pods has no pool. They have a lock of
	// their own, which is never taken under the index's.
	turns *turns

	mu           sync.Mutex // guards all below
	usage        *usage
	pools        *pool.Pools
	images       images
	ledger       *ledger
	route        *route
	reservations *reservations
	replicas     *replicas
	expiries     expiries
	backoffs     *backoffs
	landings     landings
	unsteered    unsteered
	unseen       unseen
	clock        clock
	// landed are steered pods that got their node, of which the observers are to be told.
	landed []Landed
	// scanned counts decisions by a pool that was not kept.
	scanned int
}

// New returns an empty index. The clock is for tests; nil means time.Now.
func New(cfg config.Configuration, now func() time.Time) (*Index, error) {
	reducer, err := reduced.NewReducer(cfg)
	if err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	ix := &Index{
		cfg: cfg, reducer: reducer, Now: now,
		turns:     newTurns(cfg.Server.MaxConcurrentRequests / waitingShare),
		pools:     pool.New(cfg.Ranking),
		images:    images{table: scheduler.Images{}},
		backoffs:  newBackoffs(cfg.Nodes.Backoff, cfg.Resources),
		landings:  landings{counts: map[steering.Landing]int{}},
		unsteered: unsteered{seen: map[types.UID]struct{}{}},
		unseen:    unseen{runs: map[string]run{}},
	}
	ix.usage = newUsage(ix.pools.Update)
	ix.ledger = newLedger(ix.usage, cfg.Resources)
	ix.route = &route{usage: ix.usage, pools: ix.pools, ledger: ix.ledger, allExamined: ix.allExamined}
	ix.replicas = &replicas{usage: ix.usage, maxTerms: cfg.Weights.MaxTerms, ready: sets.New[types.UID]()}
	ix.reservations = newReservations(ix.usage, ix.replicas)
	return ix, nil
}

// SetOwnNamespace says in which namespace the pods of this webhook run, so that other
// replicas are known. Set it before the first event; empty, which is the default, means
// that only their decisions tell of them.
func (ix *Index) SetOwnNamespace(name string) { ix.reducer.OwnNamespace = name }

// Observe sets who is told of what happens. Set it before the first event.
func (ix *Index) Observe(o Observers) { ix.observers = o }

// SetSynced says that all nodes, pods and namespaces that existed at the start
// are in the index. Before that, nothing is steered.
func (ix *Index) SetSynced() {
	ix.mu.Lock()
	defer ix.unlock()
	ix.synced.Store(true)
	// Until now the nodes of pods might still have come.
	ix.backoffs.keep(func(node string) bool { return ix.usage.of(node) != nil })
}

// Synced tells whether SetSynced was called.
func (ix *Index) Synced() bool { return ix.synced.Load() }

// allExamined tells whether the scheduler examines all nodes for every pod.
func (ix *Index) allExamined() bool {
	return scheduler.Examined(&ix.cfg.Scheduler, len(ix.usage.list)) == len(ix.usage.list)
}

// expire ends what is over at now.
func (ix *Index) expire(now time.Time) {
	for {
		e, over := ix.expiries.next(now)
		if !over {
			return
		}
		if r, ended := ix.reservations.expire(e.reservation, now); ended {
			ix.unseen.note(r.namespace, r.decided)
		}
		if r := ix.ledger.pods[e.pod]; r != nil {
			r.expires = false
			switch {
			case r.owner != ownerTarget:
			case now.Before(r.until):
				ix.expirePod(e.pod, r)
			default:
				ix.ledger.charge(r, ownership{})
			}
		}
	}
}

// expirePod makes sure that a target ends at its time. A pod has one entry at
// most, however often its state changes.
func (ix *Index) expirePod(uid types.UID, r *podRecord) {
	if !r.expires {
		r.expires = true
		ix.expiries.add(expiry{at: r.until, pod: uid})
	}
}

// Observers are told of what happens in an index, outside of its lock and in the
// goroutine of whoever caused it. A nil function is not called.
type Observers struct {
	// Landed is told of every steered pod that is seen to be bound.
	Landed func(Landed)
	// Negative is told of a node of which more was given back than was taken: a bug.
	Negative func(node string)
	// ClockAhead is told, once, when this process' clock differs from the API server's by
	// some seconds: by how much it is ahead.
	ClockAhead func(time.Duration)
}

// unlock unlocks the index and tells the observers what happened meanwhile.
func (ix *Index) unlock() {
	landed, negative := ix.landed, ix.usage.negative
	ix.landed, ix.usage.negative = nil, nil
	ahead, differs := ix.clock.tell()
	ix.mu.Unlock()
	if differs && ix.observers.ClockAhead != nil {
		ix.observers.ClockAhead(ahead)
	}
	for _, one := range landed {
		if ix.observers.Landed != nil {
			ix.observers.Landed(one)
		}
	}
	for _, node := range negative {
		if ix.observers.Negative != nil {
			ix.observers.Negative(node)
		}
	}
}
