package workload

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// openbNodes are the nodes of openb by their number of GPUs: how many of the
// 1,213, and what they offer besides (typical values of that trace).
var openbNodes = []struct {
	count int
	node  Amounts
}{
	{24, Amounts{GPUs: 1, MilliCPU: 32_000, MemoryMiB: 128 << 10}},
	{518, Amounts{GPUs: 2, MilliCPU: 64_000, MemoryMiB: 256 << 10}},
	{54, Amounts{GPUs: 4, MilliCPU: 96_000, MemoryMiB: 384 << 10}},
	{617, Amounts{GPUs: 8, MilliCPU: 96_000, MemoryMiB: 768 << 10}},
}

// openbTotal is the number of nodes in openb.
const openbTotal = 1213

// maxReplicas is the largest group: groups have 1 to 40 pods.
const maxReplicas = 40

// NewChurn returns a cluster of openb's shape to which pods come at a rate and
// which they leave after exponential lifetimes, so that on average the given
// share of its GPUs is requested. It begins with the pods that would be there
// after a long time.
func NewChurn(nodes int, load, rate float64, duration time.Duration, seed uint64) *Workload {
	r := newRand(seed, 2)
	w := &Workload{
		Name: Churn, Owner: ReplicaSet, Arrival: Rate, RatePerSecond: rate, Load: load, Seed: seed,
		Nodes: churnNodes(nodes, r),
	}
	g := churnGenerator{w: w, rand: r}
	for goal := load * float64(w.GPUs()); float64(w.Requested()) < goal; {
		g.addPod()
	}
	// Little's law: pods present = rate * mean lifetime. As lifetimes are
	// exponential, what is left of one has the same distribution.
	lifetime := time.Duration(float64(len(w.Pods)) / rate * float64(time.Second))
	w.Fill = len(w.Pods)
	for pod := range w.Pods {
		g.leave(pod, 0, lifetime)
	}
	for i := 1; ; i++ {
		at := time.Duration(float64(i) / rate * float64(time.Second))
		if at > duration {
			break
		}
		pod := g.addPod()
		g.leaving = append(g.leaving, Event{At: at, Pod: pod})
		g.leave(pod, at, lifetime)
	}
	w.Events = g.events(duration)
	return w
}

// churnNodes returns nodes in openb's shares, in a random order. The number of
// each size is rounded; 8-GPU nodes make up the difference.
func churnNodes(total int, r *rand.Rand) []Amounts {
	var nodes []Amounts
	for _, kind := range openbNodes[:len(openbNodes)-1] {
		count := (kind.count*total + openbTotal/2) / openbTotal
		nodes = append(nodes, times(count, kind.node)...)
	}
	nodes = append(nodes, times(total-len(nodes), openbNodes[len(openbNodes)-1].node)...)
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

// churnGenerator makes pods in groups of random size.
type churnGenerator struct {
	w    *Workload
	rand *rand.Rand
	// left is how many pods the last group still gets.
	left int
	// leaving collects arrivals and departures.
	leaving []Event
}

// addPod appends a pod and returns its index.
func (g *churnGenerator) addPod() int {
	if g.left == 0 {
		group := g.podSize()
		g.w.Groups = append(g.w.Groups, group)
		g.left = 1 + g.rand.IntN(maxReplicas)
		if group.GPUs > 1 {
			g.left = 1 // so that 98 of 100 pods, not of 100 groups, ask for one GPU
		}
	}
	g.left--
	g.w.Pods = append(g.w.Pods, len(g.w.Groups)-1)
	return len(g.w.Pods) - 1
}

// podSize draws what a group's pods ask for. 98% of the pods have one GPU; the
// rest has 2, 4 or 8 in openb's shares, 16 to 15 to 44. A group of 1-GPU pods
// has 20.5 pods on average, others one, so 98% of the pods are 70.5% of groups:
// 0.705 * 20.5 / (0.705 * 20.5 + 0.295) = 0.98.
func (g *churnGenerator) podSize() Amounts {
	gpus := int64(1)
	if g.rand.IntN(1000) >= 705 {
		switch n := g.rand.IntN(16 + 15 + 44); {
		case n < 16:
			gpus = 2
		case n < 16+15:
			gpus = 4
		default:
			gpus = 8
		}
	}
	// openb: 2 to 12 CPUs and 4 to 48 GiB per GPU.
	return Amounts{
		GPUs:      gpus,
		MilliCPU:  gpus * 1000 * int64(2+g.rand.IntN(11)),
		MemoryMiB: gpus * 1024 * 4 * int64(1+g.rand.IntN(12)),
	}
}

// leave lets a pod that comes at a time leave after a random lifetime.
func (g *churnGenerator) leave(pod int, at, mean time.Duration) {
	after := time.Duration(g.rand.ExpFloat64() * float64(mean))
	g.leaving = append(g.leaving, Event{At: at + after, Pod: pod, Leaves: true})
}

// events returns the arrivals of the fill and then everything up to the end, in
// order.
func (g *churnGenerator) events(duration time.Duration) []Event {
	events := make([]Event, 0, g.w.Fill+len(g.leaving))
	for pod := range g.w.Fill {
		events = append(events, Event{Pod: pod})
	}
	slices.SortStableFunc(g.leaving, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	for _, e := range g.leaving {
		if e.At <= duration {
			events = append(events, e)
		}
	}
	return events
}
