package index

import "time"

// The API server, kubelets and this process have a clock each. When a pod was created is
// the API server's time, and when its containers started the kubelet's, while an event
// arrives at a time of this process. A difference of some seconds must not make all pods
// look old, or not created yet. So the index learns how far its own clock is ahead of the
// API server's: the smallest time between the creation of a pod and its arrival is that,
// and what the watch takes at its fastest, which is some milliseconds. Creation times are
// cut off to seconds, so that it is up to a second too much where pods are few.

// clock relates this process' time to that of the API server.
type clock struct {
	// present is what the pods of the present period say, before that of the one before:
	// a clock that is set right is believed after two periods at the latest.
	since           time.Time
	present, before lead
	// newest is the latest creation of a pod that was seen, by the API server: how far the
	// watch has come.
	newest time.Time
	told   bool
}

// lead is by how much this process' clock is ahead, by so many pods.
type lead struct {
	least time.Duration
	pods  int
}

const (
	// leadPeriod is many times what any watch lags behind, so that pods that arrive late
	// after a stall are not the only ones of a period in a cluster with a pod a minute.
	leadPeriod = 5 * time.Minute
	// telling is from which difference on people are told: a second of it may be the
	// cut-off of creation times, and another one a slow watch. toldPods is by how many
	// pods: with 16 at random times, the cut-off of one of them is below an eighth of a
	// second in nine cases of ten.
	telling  = 3 * time.Second
	toldPods = 16
)

// note looks at a pod that is seen for the first time. While we watch, a pod that has no
// node yet has just been created. The age of any other says nothing, unless it was created
// in the future.
func (c *clock) note(created, now time.Time, justCreated bool) {
	if created.After(c.newest) {
		c.newest = created
	}
	ahead := now.Sub(created)
	if !justCreated && ahead >= 0 {
		return
	}
	if age := now.Sub(c.since); age >= leadPeriod || age < 0 {
		if c.before = c.present; age >= 2*leadPeriod || age < 0 {
			c.before = lead{}
		}
		c.since, c.present = now, lead{}
	}
	if c.present.pods == 0 || ahead < c.present.least {
		c.present.least = ahead
	}
	c.present.pods++
}

// ahead is by how much this process' clock is ahead of the API server's, less than zero if
// it is behind; zero as long as nothing is known.
func (c *clock) ahead() time.Duration {
	switch {
	case c.present.pods == 0:
		return c.before.least
	case c.before.pods == 0:
		return c.present.least
	default:
		return min(c.present.least, c.before.least)
	}
}

// server is what the API server's clock shows when ours shows now.
func (c *clock) server(now time.Time) time.Time { return now.Add(-c.ahead()) }

// local is what our clock showed when the API server's showed at.
func (c *clock) local(at time.Time) time.Time { return at.Add(c.ahead()) }

// tell returns by how much the clocks differ, once, when that is enough to tell people.
func (c *clock) tell() (ahead time.Duration, tell bool) {
	ahead = c.ahead()
	if c.told || c.present.pods+c.before.pods < toldPods || ahead.Abs() < telling {
		return 0, false
	}
	c.told = true
	return ahead, true
}

// ClockAhead is by how much this process' clock is ahead of the API server's, as far as the
// pods tell that came lately: up to a second too much where they were few, and zero if there
// were none. Less than zero means that it is behind.
func (ix *Index) ClockAhead() time.Duration {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.clock.ahead()
}
