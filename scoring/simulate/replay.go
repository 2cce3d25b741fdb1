package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Rule is how the pods of a replay are placed.
type Rule string

// Rules.
const (
	// Packed: GPU pods go where the webhook would rank first, other pods as Spread.
	Packed Rule = "Packed"
	// Spread: all pods go where the model of the default scheduler puts them, mostly
	// by NodeResourcesFit with LeastAllocated and by BalancedAllocation.
	Spread Rule = "Spread"
)

// Arrival is a pod that comes, and may end.
type Arrival struct {
	// Pod has a UID of its own and no node.
	Pod *corev1.Pod
	// At is when it is created, in seconds from any moment.
	At int64
	// Duration is how long it runs once it has a node, in seconds; negative: it does
	// not end.
	Duration int64
}

// Replay is what came of the arrivals under a rule.
type Replay struct {
	Rule Rule `json:"rule"`
	// From and To are the first and the last arrival, between which averages are
	// taken, and Busiest the moment at which the most GPUs are asked for, in seconds.
	From    int64 `json:"from"`
	To      int64 `json:"to"`
	Busiest int64 `json:"busiest"`
	// AverageOccupied (over time, 0 if To is From) and MostOccupied are numbers of
	// nodes with GPU pods.
	AverageOccupied float64 `json:"averageOccupied"`
	MostOccupied    int     `json:"mostOccupied"`
	// Pods arrived, of which GPUPods ask for GPUs. Of these, Waited found no room at
	// once, for AverageWait seconds (of those that found some later), and NeverPlaced
	// found none.
	Pods        int     `json:"pods"`
	GPUPods     int     `json:"gpuPods"`
	Waited      int     `json:"waited"`
	AverageWait float64 `json:"averageWait"`
	NeverPlaced int     `json:"neverPlaced"`
	// Nodes as they are at the busiest moment.
	Nodes []Node `json:"nodes,omitempty"`
}

// RunReplay lets the arrivals come and go under a rule, on the nodes of a state and
// with the pods that are bound in it. A pod that finds no room waits, and is tried
// again, first come first served, whenever others end.
func RunReplay(ctx context.Context, s *state.State, arrivals []Arrival, rule Rule, cfg config.Configuration, o Options) (Replay, error) {
	arrivals = slices.Clone(arrivals)
	slices.SortStableFunc(arrivals, inTime)
	r, err := newReplayer(s, arrivals, rule, cfg, o)
	if err != nil || len(arrivals) == 0 {
		return Replay{Rule: rule}, err
	}
	for next := 0; next < len(arrivals) || len(r.ends) > 0; {
		if err := interrupted(ctx); err != nil {
			return Replay{}, err
		}
		if next == len(arrivals) || r.ends.next() <= arrivals[next].At {
			r.advance(r.ends.next())
			r.endAll(ctx)
			continue
		}
		r.advance(arrivals[next].At)
		r.arrive(ctx, next)
		next++
		r.progress("replaying, "+string(rule), next, len(arrivals))
	}
	r.takePicture()
	return r.result(), nil
}

// replayer is a replay under way.
type replayer struct {
	Replay
	*Simulation
	spreader *spreader
	arrivals []Arrival
	pods     []arrived
	now      int64
	ends     departures
	waiting  []int // places among the arrivals, first come first
	// holds counts the GPU pods on a node; occupied is how many nodes have some.
	holds    map[string]int
	occupied int
	// nodeSeconds sums up occupied nodes over time, waited how long pods waited that
	// found room in the end, of which there are waitedPlaced.
	nodeSeconds, waited float64
	waitedPlaced        int
	pictured            bool
}

// arrived is what a replay notes of a pod.
type arrived struct {
	*movable
	// kind is the same for pods of which either all or none find room.
	kind string
	node string
}

func newReplayer(s *state.State, arrivals []Arrival, rule Rule, cfg config.Configuration, o Options) (*replayer, error) {
	comes := map[types.UID]bool{}
	for _, a := range arrivals {
		comes[a.Pod.UID] = true
	}
	rest := *s
	rest.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p corev1.Pod) bool { return comes[p.UID] })
	sim, err := New(&rest, cfg, o)
	if err != nil {
		return nil, err
	}
	r := &replayer{Simulation: sim, arrivals: arrivals, holds: map[string]int{}, spreader: newSpreader(sim.cfg, sim.ix, sim.scorer.Version())}
	r.Rule = rule
	gpus := make([]int64, len(arrivals))
	for i, a := range arrivals {
		asked, _ := demand.Of(a.Pod, cfg.Resources)
		spec, err := json.Marshal(a.Pod.Spec)
		if err != nil {
			return nil, fmt.Errorf("encoding pod %s: %w", a.Pod.Name, err)
		}
		m := newMovable(a.Pod, a.Pod, &asked)
		r.pods = append(r.pods, arrived{movable: m, kind: string(spec)})
		gpus[i] = m.gpus
		if m.gpus > 0 {
			r.GPUPods++
		}
	}
	for _, n := range sim.Now() {
		if n.Occupied() {
			r.holds[n.Name] = int(n.Pods)
			r.occupied++
		}
	}
	if r.Pods = len(arrivals); r.Pods > 0 {
		r.From, r.To, r.Busiest = arrivals[0].At, arrivals[r.Pods-1].At, busiest(arrivals, gpus)
		r.now = r.From
	}
	r.MostOccupied = r.occupied
	return r, nil
}

// advance moves the clock to a time.
func (r *replayer) advance(to int64) {
	if to > r.Busiest {
		r.takePicture()
	}
	if end := min(to, r.To); end > r.now {
		r.nodeSeconds += float64(end-r.now) * float64(r.occupied)
	}
	r.now, r.elapsed = to, to-r.From
}

// takePicture notes the nodes at the busiest moment, once.
func (r *replayer) takePicture() {
	if !r.pictured {
		r.pictured = true
		r.Nodes = r.nodes(r.ix, r.others)
	}
}

// arrive places a pod, or lets it wait.
func (r *replayer) arrive(ctx context.Context, i int) {
	if !r.try(ctx, i) {
		r.waiting = append(r.waiting, i)
		if r.pods[i].gpus > 0 {
			r.Waited++
		}
	}
}

// try places a pod if there is room.
func (r *replayer) try(ctx context.Context, i int) bool {
	p := &r.pods[i]
	if p.node = r.nodeFor(ctx, p); p.node == "" {
		return false
	}
	r.place(p.movable, p.node)
	r.count(p, 1)
	if d := r.arrivals[i].Duration; d >= 0 {
		r.ends.push(departure{at: r.now + d, i: i})
	}
	return true
}

// nodeFor is the node by the rule. What the webhook leaves alone, the scheduler
// places.
func (r *replayer) nodeFor(ctx context.Context, p *arrived) string {
	if r.Rule == Packed && p.gpus > 0 {
		d := r.decide(ctx, p.movable)
		if d.Target() != "" || d.Reason == steering.ReasonNothingFits {
			return d.Target()
		}
	}
	return r.spreader.Place(p.pod)
}

// count notes a pod that comes to its node (sign 1) or leaves it (-1).
func (r *replayer) count(p *arrived, sign int) {
	if p.gpus == 0 {
		r.others[p.node] += sign
		return
	}
	before := r.holds[p.node]
	r.holds[p.node] = before + sign
	switch {
	case before == 0:
		r.occupied++
	case before+sign == 0:
		r.occupied--
	}
	r.MostOccupied = max(r.MostOccupied, r.occupied)
}

// endAll ends all pods whose time is now, then tries those that wait.
func (r *replayer) endAll(ctx context.Context) {
	for len(r.ends) > 0 && r.ends.next() <= r.now {
		p := &r.pods[r.ends.pop().i]
		r.ix.DeletePod(p.stored.UID)
		r.count(p, -1)
	}
	full := map[string]bool{}
	r.waiting = slices.DeleteFunc(r.waiting, func(i int) bool {
		p := &r.pods[i]
		if full[p.kind] || !r.try(ctx, i) {
			full[p.kind] = true
			return false
		}
		if p.gpus > 0 {
			r.waited += float64(r.now - r.arrivals[i].At)
			r.waitedPlaced++
		}
		return true
	})
}

func (r *replayer) result() Replay {
	if seconds := r.To - r.From; seconds > 0 {
		r.AverageOccupied = r.nodeSeconds / float64(seconds)
	}
	if r.waitedPlaced > 0 {
		r.AverageWait = r.waited / float64(r.waitedPlaced)
	}
	for _, i := range r.waiting {
		if r.pods[i].gpus > 0 {
			r.NeverPlaced++
		}
	}
	return r.Replay
}
