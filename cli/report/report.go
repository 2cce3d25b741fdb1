// Package report says what packing would do to a cluster, as a page, Markdown,
// JSON or text: what the command report prints.
//
// Files in reading order:
//
//   - report.go: START HERE, the report and how it is made
//   - prepare.go: which pods the webhook would leave alone
//   - prices.go: what nodes cost
//   - input.go: nodes and pods from CSV files
//   - csv.go: reading such a file
//   - rows.go: the figures as rows of a table
//   - text.go: the report as text and as Markdown
//   - page.go, page.html: the report as a page
//   - nodemap.go: the drawing of nodes
package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/simulate"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// The type of the JSON form.
const (
	APIVersion = config.APIVersion
	Kind       = "Report"
)

// Report is what a simulation found. Its JSON form is a contract: keys may be added.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Simulation is always true: no figure but those of the scenario "now" was
	// measured.
	Simulation bool `json:"simulation"`
	// Version of gpu-binpacker that made the report, Source what it read, TakenAt when
	// that was the state of the cluster, ServerVersion of its API server.
	Version       string    `json:"version"`
	Source        string    `json:"source"`
	TakenAt       time.Time `json:"takenAt"`
	ServerVersion string    `json:"serverVersion,omitempty"`
	// Hashed: names are replaced.
	Hashed bool `json:"hashed"`
	// Strategy and EmptyNodes are the ranking rule of the configuration.
	Strategy   config.Strategy   `json:"strategy"`
	EmptyNodes config.EmptyNodes `json:"emptyNodes"`
	// Pods is how many pods of the cluster the report is about; nil without bindings.
	Pods *simulate.PodCounts `json:"pods,omitempty"`
	// Scenarios are ways to place the same pods, the first being what the others are
	// compared with.
	Scenarios []Scenario `json:"scenarios"`
	// Replay is the same pods as they come and go, under both rules; empty without
	// times.
	Replay []simulate.Replay `json:"replay,omitempty"`
	// Prices is nil when none were given.
	Prices *PriceSummary `json:"prices,omitempty"`
	// Notes are about the input.
	Notes []string `json:"notes,omitempty"`
	// Assumptions say by which rule all this is computed and what is left out.
	Assumptions []string `json:"assumptions"`
	// timed: the pods of the replay have times.
	timed bool
}

// Names of scenarios.
const (
	ScenarioNow             = "now"
	ScenarioPackedCreation  = "packed-by-creation"
	ScenarioPackedLargest   = "packed-largest-first"
	ScenarioSpreadAtBusiest = "spread-at-busiest"
	ScenarioPackedAtBusiest = "packed-at-busiest"
)

// Scenario is one way to place the pods.
type Scenario struct {
	Name string `json:"name"`
	// Title and Short (at most 16 characters) are for people.
	Title   string           `json:"title"`
	Short   string           `json:"short"`
	Figures simulate.Figures `json:"figures"`
	// Money per month of 730 hours; nil without prices.
	Money *Money `json:"money,omitempty"`
	// Placed is how many pods were placed again, Moved how many of them on another
	// node than now; PendingFit is how many pods that wait would find room.
	Placed     int `json:"placed,omitempty"`
	Moved      int `json:"moved,omitempty"`
	PendingFit int `json:"pendingFit"`
	// Kept are the GPU pods that stay where they are.
	Kept []simulate.Kept `json:"kept,omitempty"`
	// GaveUp: no packing was found that keeps every pod on a node.
	GaveUp bool            `json:"gaveUp,omitempty"`
	Nodes  []simulate.Node `json:"nodes"`
}

// Options of a report.
type Options struct {
	Config config.Configuration
	// Version is that of the running program.
	Version string
	// Prices are optional.
	Prices *Prices
	// Progress, if not nil, is told how far a step is.
	Progress func(step string, done, total int)
}

// New simulates and returns the report.
func New(ctx context.Context, in *Input, o Options) (*Report, error) {
	r := &Report{
		APIVersion: APIVersion, Kind: Kind, Simulation: true,
		Version: o.Version, Source: in.Source, TakenAt: in.State.TakenAt.UTC(), ServerVersion: in.State.ServerVersion,
		Hashed: in.State.Hashed, Strategy: o.Config.Ranking.Strategy, EmptyNodes: o.Config.Ranking.EmptyNodes,
		Notes: in.Notes, timed: in.Timed,
	}
	options := simulate.Options{Prepare: prepare(o.Config), Progress: o.Progress}
	hasBindings := slices.ContainsFunc(in.State.Pods, func(p corev1.Pod) bool { return p.Spec.NodeName != "" })
	if hasBindings || len(in.Arrivals) == 0 {
		if err := r.addPackings(ctx, in, o.Config, options); err != nil {
			return nil, err
		}
	}
	if len(in.Arrivals) > 0 {
		if err := r.addReplays(ctx, in, o.Config, options, !hasBindings); err != nil {
			return nil, err
		}
	}
	if r.Scenarios[0].Figures.Nodes == 0 {
		return nil, fmt.Errorf("no node in %s offers a GPU resource of the configuration (%v and names that begin with %v); name yours in resources.names of --config",
			in.Source, o.Config.Resources.Names, o.Config.Resources.Prefixes)
	}
	if o.Prices != nil {
		r.addMoney(in.State, o.Prices)
	}
	r.Assumptions = assumptions(r, in)
	return r, nil
}

// addPackings adds the pods as they are and placed again.
func (r *Report) addPackings(ctx context.Context, in *Input, cfg config.Configuration, o simulate.Options) error {
	sim, err := simulate.New(in.State, cfg, o)
	if err != nil {
		return err
	}
	counts := sim.Counts()
	r.Pods = &counts
	r.add(Scenario{Name: ScenarioNow, Title: "Now, as the pods are bound", Short: "now", Nodes: sim.Now(), PendingFit: sim.PendingFitNow(ctx)})
	for _, s := range []struct {
		order       simulate.Order
		name, title string
		short       string
	}{
		{simulate.ByCreation, ScenarioPackedCreation, "Packed in the order in which the pods were created", "by creation"},
		{simulate.LargestFirst, ScenarioPackedLargest, "Packed all anew, the largest pods first", "largest first"},
	} {
		p, err := sim.Pack(ctx, s.order)
		if err != nil {
			return err
		}
		r.add(Scenario{Name: s.name, Title: s.title, Short: s.short, Nodes: p.Nodes, Placed: p.Placed, Moved: p.Moved,
			PendingFit: p.PendingFit, Kept: p.Kept, GaveUp: p.GaveUp})
	}
	return nil
}

// addReplays adds the arrivals under both rules, and their busiest moment if there
// is nothing else to show.
func (r *Report) addReplays(ctx context.Context, in *Input, cfg config.Configuration, o simulate.Options, show bool) error {
	for _, s := range []struct {
		rule        simulate.Rule
		name, title string
		short       string
	}{
		{simulate.Spread, ScenarioSpreadAtBusiest, "Spread, as the model of the default scheduler places the pods", "spread"},
		{simulate.Packed, ScenarioPackedAtBusiest, "Packed, as gpu-binpacker ranks the nodes", "packed"},
	} {
		replay, err := simulate.RunReplay(ctx, in.State, in.Arrivals, s.rule, cfg, o)
		if err != nil {
			return err
		}
		if show {
			r.add(Scenario{Name: s.name, Title: s.title, Short: s.short, Nodes: replay.Nodes})
		}
		if in.Timed || replay.NeverPlaced > 0 {
			replay.Nodes = nil // they are in the scenarios, if anywhere
			r.Replay = append(r.Replay, replay)
		}
	}
	return nil
}

func (r *Report) add(s Scenario) {
	s.Figures = simulate.Count(s.Nodes)
	r.Scenarios = append(r.Scenarios, s)
}

// busiest tells whether the scenarios are of the busiest moment of a replay.
func (r *Report) busiest() bool { return r.Scenarios[0].Name == ScenarioSpreadAtBusiest }

// assumptions are the rules in words.
func assumptions(r *Report, in *Input) []string {
	list := []string{
		"This is a simulation. gpu-binpacker never moves a running pod: it ranks nodes for new pods, so such figures are approached as pods end and others come.",
		fmt.Sprintf("Packed: each pod goes to the node that gpu-binpacker's own code ranks first (strategy %s, of empty nodes the %s), among the nodes with everything free that it requests, whose taints it tolerates and that match its node selector and required affinity. It counts as if every namespace had opted in and the scheduler always followed the first rank.",
			r.Strategy, emptyNodesText(r.EmptyNodes)),
		"Not simulated: preemption, topology spread, pod affinity and anti-affinity, disruption budgets, volumes, quotas, and which GPU of a node a pod gets.",
	}
	if r.Pods != nil {
		list = append(list,
			"Placed again are GPU pods that have a node. Those that stay where they are: of DaemonSets, static or ending ones, those that gpu-binpacker leaves alone (own spread constraints or anti-affinity, other schedulers, opted out), those that only one node can take, and those that found no other place. Pods without GPUs stay, and pods without a node do not count.",
			"Packed by creation is about what packing at admission would have given the same pods in the same order; pods that ended since are not known. Largest first is what placing everything anew could reach, which no admission webhook can do. Both are heuristics: neither is the least number of nodes possible, and either can be worse than now.")
	}
	if r.busiest() {
		list = append(list, "The drawings and the figures of nodes are of one moment: "+r.moment()+".")
	}
	if len(in.Arrivals) > 0 {
		list = append(list, "Spread: a model of kube-scheduler's default profile: NodeResourcesFit with LeastAllocated on CPU and memory, BalancedAllocation, taints and the pods' own preferences, on the part of a large cluster that the scheduler examines. Default topology spreading, which spreads replicas further, is not in it. Pods without GPUs are placed by it under both rules. A pod that finds no room waits and is tried again when others end.")
	}
	return append(list,
		"Occupied: a GPU pod is on the node; those of DaemonSets and ending ones do not count. Removable: nothing is on the node but pods of DaemonSets and static pods; whether an autoscaler removes it depends on its settings. Stranded: free GPUs on occupied nodes. Sizes that fit are by GPUs alone, one size at a time, on nodes that take pods: a pod's CPU, memory, taints and affinity may allow less.")
}

func emptyNodesText(o config.EmptyNodes) string {
	if o == config.LargestFirst {
		return "largest first"
	}
	return "smallest first"
}

// keptByReason counts the pods that stay, by reason, sorted.
func keptByReason(kept []simulate.Kept) []keptCount {
	var list []keptCount
	for _, k := range kept {
		i := slices.IndexFunc(list, func(c keptCount) bool { return c.Reason == k.Reason })
		if i < 0 {
			i = len(list)
			list = append(list, keptCount{Reason: k.Reason})
		}
		list[i].Count++
		if len(list[i].Examples) < 3 {
			list[i].Examples = append(list[i].Examples, k.Pod)
		}
	}
	slices.SortFunc(list, func(a, b keptCount) int { return cmp.Compare(a.Reason, b.Reason) })
	return list
}

// keptCount is how many pods stay where they are for one reason.
type keptCount struct {
	Reason   steering.Reason
	Count    int
	Examples []string
}
