package pool

import "time"

// An event moves its node within every pool, and with many pools that takes most of the
// event's time. So only the first few pools always follow. Another one rests while it is not
// asked for: it keeps the states that the nodes had, and catches up when it is asked for
// again. That is how pools begin, so that kinds of which there is only one pod cost events
// nothing.

const (
	// alwaysAwake is how many pools there can be without any of them resting: most
	// clusters have fewer kinds of pods.
	alwaysAwake = 8
	// restAge is how long a pool has not been asked for when it goes to rest. Catching up
	// costs about as much as following the events of a tenth of a second in a busy cluster.
	restAge = time.Second
	// restEvery is how often one pool at most goes to rest, since it takes the states of all
	// nodes.
	restEvery = 10 * time.Millisecond
	// MaxBehind is with how many changed nodes a pool catches up under the lock, which
	// takes 20 microseconds each at most: half a millisecond. With more it catches up
	// outside of it.
	MaxBehind = 32
)

// Resting tells whether the pool does not follow events.
func (p *Pool) Resting() bool { return p.states != nil }

// wake makes a resting pool follow events again. It is false if it is too far behind.
func (p *Pool) wake(latest Latest) bool {
	states := latest.AppendTo(nil)
	if p.Behind(states) > MaxBehind {
		return false
	}
	p.CatchUp(states)
	p.states = nil
	return true
}

// rest lets a pool go to rest that has not been asked for, if there is one and it is time.
func (p *Pools) rest(now time.Time, latest Latest) {
	if len(p.ByKind) <= alwaysAwake || now.Sub(p.rested) < restEvery {
		return
	}
	p.rested = now
	for _, one := range p.ByKind {
		if !one.Resting() && now.Sub(one.usedAt) >= restAge {
			one.states = latest.AppendTo(nil)
			return
		}
	}
}

// TakeResting takes away and returns the pool of a kind, which is resting and can catch up
// outside the lock then; nil if there is none.
func (p *Pools) TakeResting(kind Kind) *Pool {
	resting := p.ByKind[kind]
	if resting == nil || !resting.Resting() {
		return nil
	}
	delete(p.ByKind, kind)
	return resting
}
