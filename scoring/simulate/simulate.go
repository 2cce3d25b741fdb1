// Package simulate places the pods of a cluster anew, by the rule of the webhook
// or by a model of the default scheduler, and says what would be different: what
// the command report shows. It moves nothing anywhere; it works on an index of its
// own, with the ranking code that also decides at admission.
//
// Files in reading order:
//
//   - simulate.go: START HERE, a cluster to simulate, as it is now
//   - pack.go: its GPU pods, placed again
//   - replay.go: pods that come and go
//   - spread.go: where the scheduler would put pods without us, to compare with
//   - timeline.go: the events of a replay in order
//   - figures.go: what is counted
package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Options of a simulation.
type Options struct {
	// Prepare returns a pod as its author wrote it, without our parts and without a
	// node, or the reason why the webhook leaves it alone. It must not change the pod
	// that it gets. Nil: every pod is as it is, and none is left alone.
	Prepare func(*corev1.Pod) (*corev1.Pod, steering.Reason)
	// Progress, if not nil, is told after each pod how many of a step are done.
	Progress func(step string, done, total int)
}

// Reasons why a GPU pod stays where it is, beside those of packages scoring and
// webhook.
const (
	// ReasonDaemonSet: it belongs to a DaemonSet or to its node.
	ReasonDaemonSet steering.Reason = "DaemonSet"
	// ReasonEnding: it is being deleted.
	ReasonEnding steering.Reason = "Ending"
	// ReasonNodeGone: its node does not exist any more, so that it will go too.
	ReasonNodeGone steering.Reason = "NodeGone"
)

// Simulation is a cluster whose pods can be placed again. It is not for use by
// several goroutines.
type Simulation struct {
	cfg      config.Configuration
	state    *state.State
	ix       *index.Index
	scorer   *scoring.Scorer
	progress func(string, int, int)
	// elapsed is how far a replay's clock is from when the state was taken, in seconds.
	elapsed int64
	// movable are the GPU pods that can be placed again; kept says why others are not.
	movable []*movable
	kept    []Kept
	counts  PodCounts
	// pending are GPU pods without a node, in order of creation.
	pending []*movable
	// others counts, by node, the pods that keep an autoscaler from removing it and
	// hold no GPUs, or are about to let go of them.
	others map[string]int
	// types are the instance types of the nodes.
	types map[string]string
}

// PodCounts is how many pods a simulation is about.
type PodCounts struct {
	// GPU pods, with a node (Running) or without one (Pending), and all other pods
	// that have a node.
	Running int `json:"running"`
	Pending int `json:"pending"`
	Others  int `json:"others"`
}

// Kept is a GPU pod that stays where it is, and why.
type Kept struct {
	Pod    string          `json:"pod"` // namespace/name
	Node   string          `json:"node"`
	Reason steering.Reason `json:"reason"`
}

// movable is a GPU pod with a node.
type movable struct {
	key string // namespace/name
	// stored is the pod as it is, pod as its author wrote it.
	stored, pod *corev1.Pod
	// gpus is the largest of its GPU requests; cpu (millicores) and memory (bytes)
	// are what else it asks for.
	gpus, cpu, memory int64
}

// New prepares the simulation of a cluster, which it does not change. Only pods
// that have a node count on it.
func New(s *state.State, cfg config.Configuration, o Options) (*Simulation, error) {
	// Only the first node of a ranking is of interest here.
	cfg.Weights.MaxTerms, cfg.Weights.TailTerms = 1, 0
	// Pods count once they are bound: nothing is reserved.
	cfg.Mode = config.ModeDryRun
	sim := &Simulation{cfg: cfg, state: s, progress: o.Progress, others: map[string]int{}, types: map[string]string{}}
	if sim.progress == nil {
		sim.progress = func(string, int, int) {}
	}
	if o.Prepare == nil {
		o.Prepare = func(p *corev1.Pod) (*corev1.Pod, steering.Reason) { return p, steering.ReasonNone }
	}
	var err error
	if sim.ix, sim.scorer, err = sim.newIndex(); err != nil {
		return nil, err
	}
	for i := range s.Nodes {
		sim.types[s.Nodes[i].Name] = s.Nodes[i].Labels[corev1.LabelInstanceTypeStable]
	}
	for i := range s.Pods {
		sim.add(&s.Pods[i], o.Prepare)
		sim.progress("reading the pods", i+1, len(s.Pods))
	}
	slices.SortStableFunc(sim.pending, byCreation)
	sim.warmUp()
	return sim, nil
}

// newIndex returns an index with the nodes and no pods. Its clock stands still,
// but in a replay.
func (sim *Simulation) newIndex() (*index.Index, *scoring.Scorer, error) {
	ix, err := index.New(sim.cfg, func() time.Time {
		return sim.state.TakenAt.Add(time.Duration(sim.elapsed) * time.Second)
	})
	if err != nil {
		return nil, nil, err
	}
	for i := range sim.state.Nodes {
		ix.SetNode(&sim.state.Nodes[i])
	}
	ix.SetSynced()
	return ix, sim.state.Scorer(sim.cfg, ix), nil
}

// add puts a pod where it belongs.
func (sim *Simulation) add(pod *corev1.Pod, prepare func(*corev1.Pod) (*corev1.Pod, steering.Reason)) {
	asked, _ := demand.Of(pod, sim.cfg.Resources)
	isGPU := len(asked.GPUs) > 0
	if pod.Spec.NodeName == "" {
		if isGPU {
			sim.counts.Pending++
			if user, reason := prepare(pod); reason == steering.ReasonNone {
				sim.pending = append(sim.pending, newMovable(pod, user, &asked))
			}
		}
		return
	}
	sim.ix.SetPod(pod)
	if !isGPU {
		sim.counts.Others++
		if !steering.IsNodePod(pod) {
			sim.others[pod.Spec.NodeName]++
		}
		return
	}
	sim.counts.Running++
	var reason steering.Reason
	user := pod
	_, exists := sim.types[pod.Spec.NodeName]
	switch {
	case !exists:
		reason = ReasonNodeGone
	case steering.IsNodePod(pod):
		reason = ReasonDaemonSet
	case pod.DeletionTimestamp != nil:
		reason = ReasonEnding
		sim.others[pod.Spec.NodeName]++
	default:
		user, reason = prepare(pod)
	}
	m := newMovable(pod, user, &asked)
	if reason != steering.ReasonNone {
		sim.kept = append(sim.kept, m.kept(reason))
		return
	}
	sim.movable = append(sim.movable, m)
}

func newMovable(stored, user *corev1.Pod, d *demand.Demand) *movable {
	m := &movable{key: stored.Namespace + "/" + stored.Name, stored: stored, pod: user}
	for _, g := range d.GPUs {
		m.gpus = max(m.gpus, g.Count)
	}
	for i := range stored.Spec.Containers {
		requests := stored.Spec.Containers[i].Resources.Requests
		m.cpu += requests.Cpu().MilliValue()
		m.memory += requests.Memory().Value()
	}
	return m
}

func (m *movable) kept(reason steering.Reason) Kept {
	return Kept{Pod: m.key, Node: m.stored.Spec.NodeName, Reason: reason}
}

// warmUp makes the ranking's unit of CPU and memory that of the cluster as it is:
// the index takes it at the first decision, and the clock stands still.
func (sim *Simulation) warmUp() {
	if len(sim.movable) > 0 {
		sim.decide(context.Background(), sim.movable[0])
	}
}

// decide is the webhook's decision about a pod, which reserves nothing.
func (sim *Simulation) decide(ctx context.Context, m *movable) scoring.Decision {
	return sim.scorer.Decide(ctx, scoring.Request{Pod: m.pod, Namespace: m.stored.Namespace, UID: m.stored.UID})
}

// place tells the index that a pod is on a node.
func (sim *Simulation) place(m *movable, node string) { bind(sim.ix, m.stored, node) }

func bind(ix *index.Index, pod *corev1.Pod, node string) {
	bound := *pod
	bound.Spec.NodeName = node
	ix.SetPod(&bound)
}

// Counts returns how many pods there are.
func (sim *Simulation) Counts() PodCounts { return sim.counts }

// Now returns the nodes as they are.
func (sim *Simulation) Now() []Node { return sim.nodes(sim.ix, sim.others) }

func byCreation(a, b *movable) int {
	return cmp.Or(a.stored.CreationTimestamp.Compare(b.stored.CreationTimestamp.Time), cmp.Compare(a.key, b.key))
}

func bySize(a, b *movable) int {
	return cmp.Or(cmp.Compare(b.gpus, a.gpus), cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.memory, a.memory), byCreation(a, b))
}

func interrupted(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("simulating: %w", err)
	}
	return nil
}
