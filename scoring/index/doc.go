// Package index keeps what is used on every node, from events of nodes, pods and namespaces,
// and gives decisions something to look at and room to reserve.
//
// Files in reading order:
//
//   - index.go: START HERE, the parts and the lock around them
//   - events.go: what an event does
//   - arrivals.go: what the first sight of a pod tells, and its outcome
//   - usage.go: what is used on every node
//   - ledger.go: where each pod counts
//   - route.go: on which node a pod counts that is on its way
//   - reservations.go: room held until a decision's pod is seen
//   - replicas.go: what other replicas decide at the same time
//   - unseen.go: decisions whose pods never come
//   - backoff.go: nodes that refuse GPU pods
//   - outcomes.go: what pods have shown of a node
//   - clock.go: the API server's clock and ours
//   - images.go: which images are on how many nodes
//   - landings.go: where steered pods went
//   - unsteered.go: GPU pods that appear without a decision of ours
//   - view.go: what a decision looks at, and its reservation
//   - kinds.go: the pool that it goes by, known or new
//   - turns.go: who goes through all nodes for a new one, and when
//   - look.go: the same without changing anything
//   - sizes.go: the index for people and metrics
//
// Exported methods of Index take its lock. Its other methods, and all methods of the parts,
// are called under it: no part has a lock. What readers hold afterwards, without the lock:
//
//	what                    how it is kept                     why reading it is safe
//	nodes.State, Load,      never changed; an event puts       nobody writes to it
//	reduced.Pod, Node       another one in its place
//	View.Pool               two copy-on-write trees, cloned    a clone never changes; the index
//	                        for readers, shared until the      makes another one at the next
//	                        next change                        change
//	  of a pool not kept    the pool's own lists               only this reader has the pool
//	states of a new pool    a list, copied                     the copy belongs to its maker
//	View.Latest             a slice of atomic pointers,        each pointer is swapped as a
//	                        replaced when it has to grow       whole; readers find now's state
//	View.Images             a map, lent: copied before the     the lent one is not written to
//	                        next change                        any more
//	View.NodeOrder          a list, dropped when nodes come    it computes itself once
//	                        or go
//	View.InBackoff          maps, replaced at every change     the old one is not written to
//	synced, lastEvent       atomic                             -
//	cfg, now, observers     set before the first event         never written to later
//	reducer                 caches with locks of their own     taken before the index's lock,
//	                                                           never under it
//	turns                   semaphores and a lock              waited for before the index's
//	                                                           lock, never under it
package index
