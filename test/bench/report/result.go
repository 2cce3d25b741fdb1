package report

import (
	"fmt"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
)

// Result is one run of one workload on one system: an entry of packing.json. The
// keys are a contract; more may be added.
type Result struct {
	Workload      string  `json:"workload"`
	Owner         string  `json:"owner"`
	Arrival       string  `json:"arrival"`
	RatePerSecond float64 `json:"ratePerSecond"`
	// Nodes of the cluster, and the share of its GPUs that is asked for.
	Nodes int     `json:"nodes"`
	Load  float64 `json:"load"`
	Seed  uint64  `json:"seed"`
	Mode  string  `json:"mode"`
	// System is default, most-allocated, plugin, ours or bound; Replicas of the
	// webhook, 0 for others.
	System   string `json:"system"`
	Replicas int    `json:"replicas"`
	// ServedByReplica is how many admission requests each replica answered.
	ServedByReplica []int `json:"servedByReplica"`

	// OccupiedNodes hold a GPU pod and GPUsOnOccupiedNodes is what these nodes
	// have; averages over time in workloads with churn.
	OccupiedNodes       float64 `json:"occupiedNodes"`
	GPUsOnOccupiedNodes float64 `json:"gpusOnOccupiedNodes"`
	// GPUsRequested is what the pods ask for, an average as well.
	GPUsRequested float64 `json:"gpusRequested"`
	// IdealNodes and IdealGPUs are the lower bound.
	IdealNodes int   `json:"idealNodes"`
	IdealGPUs  int64 `json:"idealGpus"`
	// FreeOnEmptyNodes is the share of free GPUs that are on nodes without GPU
	// pods.
	FreeOnEmptyNodes float64 `json:"freeOnEmptyNodes"`
	// Unplaced8GPU is how many 8-GPU pods found no node: at the end, and with
	// churn when they came.
	Unplaced8GPU int `json:"unplaced8Gpu"`
	// Pods that were created, and how many of them were ever bound.
	Pods  int `json:"pods"`
	Bound int `json:"bound"`
	// Landed says where pods with a ranking went.
	Landed Landed `json:"landed"`
	// BindAllSeconds is the time from the first pod, or with waiting pods the
	// first node, to the last binding.
	BindAllSeconds float64 `json:"bindAllSeconds"`

	// Late pods got late steering, Unsteered ones nothing.
	Late      int `json:"late"`
	Unsteered int `json:"unsteered"`
	// Denied and FailedOpen are pods refused, and let pass, because of a webhook.
	Denied     int `json:"denied"`
	FailedOpen int `json:"failedOpen"`
	// Attempts is how often the run was made; only the last one is reported. An
	// attempt is repeated when a call of the webhook failed.
	Attempts int `json:"attempts,omitempty"`
	// Patient: the webhook had a longer timeout than the shipped one.
	Patient bool `json:"patient,omitempty"`
	// LagSeconds is how much later than planned the last event of a workload
	// with a rate came.
	LagSeconds float64 `json:"lagSeconds"`
	// Waits are the waiting times of the pods that came after the fill, in
	// workloads with churn.
	Waits *Waits `json:"waits,omitempty"`
	// NodeUse is, for one run of small clusters, per node its GPUs and those in
	// use; with churn, at the end.
	NodeUse [][2]int64 `json:"nodeUse,omitempty"`
}

// Waits says how long pods waited, in seconds from creation to binding. Median
// and P99 are of all pods: they show whether the scheduler could follow.
type Waits struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	// Pods8GPU were bound, and waited so long on average and at most.
	Pods8GPU int     `json:"pods8Gpu"`
	Mean8GPU float64 `json:"mean8Gpu"`
	Max8GPU  float64 `json:"max8Gpu"`
}

// Landed counts the pods with a ranking by where they were bound.
type Landed struct {
	// Target is the first node of the ranking, Listed another one, Other none of
	// it.
	Target int `json:"target"`
	Listed int `json:"listed"`
	Other  int `json:"other"`
}

// New returns a result that describes the workload, without measurements.
func New(w *workload.Workload, mode, system string, replicas int) Result {
	bound := w.Bound()
	return Result{
		Workload: w.Name, Owner: string(w.Owner), Arrival: string(w.Arrival), RatePerSecond: w.RatePerSecond,
		Nodes: len(w.Nodes), Load: w.Load, Seed: w.Seed, Mode: mode, System: system, Replicas: replicas,
		ServedByReplica: []int{},
		GPUsRequested:   w.AverageRequested(),
		IdealNodes:      bound.Nodes,
		IdealGPUs:       bound.GPUs,
		Pods:            len(w.Pods),
	}
}

// NewBound returns the computed lower bound as a result.
func NewBound(w *workload.Workload, mode, system string) Result {
	r := New(w, mode, system, 0)
	r.OccupiedNodes, r.GPUsOnOccupiedNodes, r.Bound = float64(r.IdealNodes), float64(r.IdealGPUs), r.Pods
	return r
}

// Case names the workload that was replayed, without the system.
func (r *Result) Case() string {
	rate := ""
	if r.RatePerSecond > 0 {
		rate = fmt.Sprintf("@%g", r.RatePerSecond)
	}
	return fmt.Sprintf("%s/%d/%s/%s%s/%.2f", r.Workload, r.Nodes, r.Owner, r.Arrival, rate, r.Load)
}

// SystemName is ours-2 for our system with two replicas.
func (r *Result) SystemName() string {
	if r.Replicas == 0 {
		return r.System
	}
	return fmt.Sprintf("%s-%d", r.System, r.Replicas)
}

// Key identifies a run: a later one of the same key replaces it.
func (r *Result) Key() string {
	return fmt.Sprintf("%s/seed%d/%s/%s", r.Case(), r.Seed, r.Mode, r.SystemName())
}
