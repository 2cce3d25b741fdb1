package workload

import (
	"math/rand/v2"
	"strings"
	"time"
)

// Amounts are what a node offers or a pod asks for.
type Amounts struct {
	GPUs      int64
	MilliCPU  int64
	MemoryMiB int64
}

// Names of the workloads in reports.
const (
	Uniform = "uniform"
	Mixed   = "mixed"
	Waiting = "waiting"
	Churn   = "churn"
	Openb   = "openb"

	// churnSuffix tells the workloads in which a trace's pods leave from those in
	// which they stay.
	churnSuffix = "-churn"
)

// IsChurn tells by a workload's name whether pods leave in it.
func IsChurn(name string) bool { return name == Churn || strings.HasSuffix(name, churnSuffix) }

// Owner is what the pods belong to.
type Owner string

// Values of Owner.
const (
	ReplicaSet Owner = "replicaset"
	Job        Owner = "job"
	Bare       Owner = "bare"
)

// Arrival is how pods are created.
type Arrival string

// Values of Arrival.
const (
	// Sequential: the next pod when the one before is bound.
	Sequential Arrival = "sequential"
	// Burst: as fast as the API server takes them.
	Burst Arrival = "burst"
	// Rate: at RatePerSecond.
	Rate Arrival = "rate"
)

// Workload is nodes and pods to replay.
type Workload struct {
	// Name, Owner, Arrival, RatePerSecond, Load and Seed identify it together
	// with the number of nodes. Load is the share of GPUs requested; in a
	// workload with churn, the average that is aimed at.
	Name          string
	Owner         Owner
	Arrival       Arrival
	RatePerSecond float64
	Load          float64
	Seed          uint64

	// Nodes in the order of their names.
	Nodes []Amounts
	// Groups are what each pod of an owner object asks for: a ReplicaSet, say,
	// has pods of one group only.
	Groups []Amounts
	// Pods in the order of their creation; each is the index of its group.
	Pods []int
	// BurstSize splits a burst: the next part comes when the one before is
	// bound. 0 means one burst.
	BurstSize int
	// NodesLast: the nodes appear when all pods wait for them.
	NodesLast bool

	// Events are the arrivals and departures of a workload with churn, in order.
	Events []Event
	// Fill is how many events at the beginning only fill the cluster: they come
	// as a burst, and measuring starts when they are over.
	Fill int
	// WholeLives: a pod leaves when the time between its two events has passed
	// since it was bound, as a job does that runs from its binding on. Then every
	// system binds the same pods, and one that lets pods wait pays for them later.
	// Otherwise a pod leaves at the time of its event, bound or not.
	WholeLives bool
}

// Event is a pod's arrival or departure.
type Event struct {
	// At is the time since the end of the fill.
	At time.Duration
	// Pod is an index in Pods.
	Pod int
	// Leaves tells departure from arrival.
	Leaves bool
}

// ArrivesAt returns, for a workload with churn, when each pod comes; those of the
// fill at 0.
func (w *Workload) ArrivesAt() []time.Duration {
	at := make([]time.Duration, len(w.Pods))
	for _, e := range w.Events {
		if !e.Leaves {
			at[e.Pod] = e.At
		}
	}
	return at
}

// HasChurn tells whether pods leave.
func (w *Workload) HasChurn() bool { return len(w.Events) > 0 }

// Pod returns what a pod asks for.
func (w *Workload) Pod(i int) Amounts { return w.Groups[w.Pods[i]] }

// GPUs returns the number of GPUs of all nodes.
func (w *Workload) GPUs() int64 {
	var sum int64
	for _, n := range w.Nodes {
		sum += n.GPUs
	}
	return sum
}

// Requested returns the number of GPUs that all pods ask for.
func (w *Workload) Requested() int64 {
	var sum int64
	for i := range w.Pods {
		sum += w.Pod(i).GPUs
	}
	return sum
}

// newRand returns the generator of one workload. The stream keeps workloads of
// the same seed apart.
func newRand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// times returns a slice of n equal values.
func times[T any](n int, value T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = value
	}
	return out
}
