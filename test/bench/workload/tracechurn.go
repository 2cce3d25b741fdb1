package workload

import (
	"cmp"
	"slices"
	"time"
)

// ChurnWorkload returns the pods of the trace in its order of arrival, and lets
// them leave after their lifetimes there, compressed in time. The trace itself
// spreads 7,064 pods over 149 days, so that never more than 71 of the 6,212 GPUs
// are in use. Here pods arrive at the given rate, and all lifetimes are divided by
// the one number that makes the load of the second half the given one. The first
// half only fills the cluster: of it, those pods are created that are still there
// in the middle. Pods that ask for the same follow one another in ReplicaSets of 1
// to 40. The seed draws their sizes, and with which pod of the trace the first
// half begins; after the last pod of the trace comes its first.
func (t *Trace) ChurnWorkload(load, rate float64, seed uint64) *Workload {
	w := &Workload{
		Name: t.Name + churnSuffix, Owner: ReplicaSet, Arrival: Rate, RatePerSecond: rate, Load: load, Seed: seed,
		Nodes: t.Nodes, WholeLives: true,
	}
	r := newRand(seed, 4)
	pods := slices.SortedStableFunc(slices.Values(t.Pods), func(a, b TracePod) int { return cmp.Compare(a.Created, b.Created) })
	begin := r.IntN(len(pods))
	pods = slices.Concat(pods[begin:], pods[:begin])
	c := compression{pods: pods, rate: rate}
	c.factor = c.factorFor(load * float64(w.GPUs()))
	type open struct{ group, left int }
	groups := map[Amounts]*open{}
	var fill, events []Event
	for i, pod := range pods {
		arrives, leaves := c.arrives(i), c.leaves(i)
		if leaves <= 0 {
			continue
		}
		g := groups[pod.Amounts]
		if g == nil || g.left == 0 {
			g = &open{group: len(w.Groups), left: 1 + r.IntN(maxReplicas)}
			groups[pod.Amounts] = g
			w.Groups = append(w.Groups, pod.Amounts)
		}
		g.left--
		w.Pods = append(w.Pods, g.group)
		index := len(w.Pods) - 1
		if arrives <= 0 {
			fill = append(fill, Event{Pod: index})
		} else {
			events = append(events, Event{At: arrives, Pod: index})
		}
		if leaves < c.end() {
			events = append(events, Event{At: leaves, Pod: index, Leaves: true})
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	w.Fill, w.Events = len(fill), slices.Concat(fill, events)
	return w
}

// compression gives the pods of the trace new times, from the middle of the
// arrivals on.
type compression struct {
	pods []TracePod
	rate float64
	// factor is what a second of a lifetime becomes, in seconds.
	factor float64
}

// arrives returns the i-th pod's time, negative in the first half.
func (c *compression) arrives(i int) time.Duration {
	return time.Duration(float64(i-len(c.pods)/2) / c.rate * float64(time.Second))
}

// leaves returns when the i-th pod leaves; no lifetime is below a tenth of a
// second, since the scheduler could not bind it in time.
func (c *compression) leaves(i int) time.Duration {
	seconds := c.factor * float64(c.pods[i].Deleted-c.pods[i].Created)
	// Beyond an hour it makes no difference, and a Duration has an end.
	lifetime := time.Duration(min(max(seconds, 0.1), 3600) * float64(time.Second))
	return c.arrives(i) + lifetime
}

// end is the time of the last arrival.
func (c *compression) end() time.Duration { return c.arrives(len(c.pods) - 1) }

// factorFor returns the factor with which so many GPUs are asked for on average
// in the second half; the average grows with the factor.
func (c compression) factorFor(gpus float64) float64 {
	low, high := 0.0, 1.0
	for range 40 {
		c.factor = (low + high) / 2
		if c.average() < gpus {
			low = c.factor
		} else {
			high = c.factor
		}
	}
	return high
}

// average is the GPUs asked for at a time in the second half, on average.
func (c *compression) average() float64 {
	var sum float64
	for i, pod := range c.pods {
		from, to := max(c.arrives(i), 0), min(c.leaves(i), c.end())
		if to > from {
			sum += float64(pod.GPUs) * (to - from).Seconds()
		}
	}
	return sum / c.end().Seconds()
}
