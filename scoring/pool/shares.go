package pool

import "time"

// There is room for so many pools, and anybody may create pods of a new kind as fast as the
// API server takes them. So when all are taken, a namespace has a share of them: as long as
// it holds fewer than another namespace, its new pools take the place of those of the
// namespace that holds most. With its share it can only replace pools of its own, and only
// those that it does not use: a pool that is replaced as soon as it is made costs more than
// it saves. A kind without a pool is ranked all the same, by a pool that is not kept.

// idleAge is how long a pool has not been asked for when it is taken for unused. A
// namespace with its share replaces all pools in this time at most, which is 6 a second; a
// kind that is asked for less often than this saves nearly nothing by a pool.
const idleAge = 10 * time.Second

// HasRoom tells whether the pool of another kind is to be kept for a namespace; wanted says
// that several of its pods wait for it.
func (p *Pools) HasRoom(namespace string, wanted bool, now time.Time) bool {
	_, room := p.toDrop(namespace, wanted, now)
	return room
}

// Keep keeps a pool that has trees and has caught up, and drops another one for it if need
// be. It is false if there is no room for it, or if it has not the order that pools have
// now.
func (p *Pools) Keep(made *Pool, namespace string, wanted bool, now time.Time) bool {
	dropped, room := p.toDrop(namespace, wanted, now)
	if !room || made.unit != p.unit {
		return false
	}
	if dropped != nil {
		delete(p.ByKind, dropped.kind)
	}
	if len(p.ByKind) < alwaysAwake {
		made.states = nil
	}
	p.ByKind[made.kind] = made
	p.note(made, namespace, now)
	return true
}

// toDrop returns the pool whose place another pool of a namespace is to take, nil if there
// is a place without that; room is false if it is to take none.
func (p *Pools) toDrop(namespace string, wanted bool, now time.Time) (dropped *Pool, room bool) {
	if len(p.ByKind) < MaxPools {
		return nil, true
	}
	held, most := p.held()
	// Two namespaces that differ by one would take the same place from each other in turn.
	if held[namespace]+1 < most {
		return p.leastUsed(func(one *Pool) bool { return held[one.namespace] == most }), true
	}
	if held[namespace] > 0 && wanted {
		return p.leastUsed(func(one *Pool) bool { return one.namespace == namespace }), true
	}
	dropped = p.leastUsed(func(one *Pool) bool { return held[one.namespace] >= held[namespace] })
	return dropped, now.Sub(dropped.usedAt) >= idleAge
}

// held counts the pools of each namespace, a pool being of the namespace that used it last.
// Counting takes less than keeping count of namespaces that come and go.
func (p *Pools) held() (held map[string]int, most int) {
	held = map[string]int{}
	for _, one := range p.ByKind {
		held[one.namespace]++
		most = max(most, held[one.namespace])
	}
	return held, most
}

// leastUsed returns the pool that was not used for longest of those that may go.
func (p *Pools) leastUsed(mayGo func(*Pool) bool) (least *Pool) {
	for _, one := range p.ByKind {
		if mayGo(one) && (least == nil || one.used < least.used) {
			least = one
		}
	}
	return least
}
