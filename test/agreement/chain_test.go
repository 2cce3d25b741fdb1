package agreement

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/test/agreement/cluster"
)

// chainCases is fewer than cases: each is many states.
const chainCases = 250

// Within the chain's assumptions, whatever copies of the pod do to the listed
// nodes, no listed node beats one that is listed before it and still feasible.
// And while only the first one fills, none without a term beats it, unless the
// decision says that it may.
func TestChainHolds(t *testing.T) {
	for name, cases := range map[string]int{
		"default": chainCases, "most allocated GPUs": chainCases / 5, "ratio that peaks": chainCases / 5, "ratio that dips": chainCases / 5,
	} {
		t.Run(name, func(t *testing.T) { chainHolds(t, profiles[name], cases) })
	}
}

// chainHolds draws cases under a profile.
func chainHolds(t *testing.T, under profile, cases int) {
	t.Helper()
	r := newRealScheduler(t, under.profile)
	cfg := config.Default()
	under.ours(&cfg.Scheduler)
	lengths, states, longest := 0, 0, 0
	for seed := range uint64(cases) {
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c := newChainCase(t, r, cfg, seed)
			if len(c.decision.Ranking) == 0 {
				return
			}
			lengths++
			longest = max(longest, len(c.decision.Ranking))
			for range 8 {
				c.fillAnyhow()
				c.checkOrder(t)
				states++
			}
			c.fillNothing()
			for c.checkUnlisted(t); c.fillFirst(); states++ {
				c.checkOrder(t)
				c.checkUnlisted(t)
			}
		})
		if !ok {
			t.Fatal("stopped at the first failure")
		}
	}
	t.Logf("%d rankings, the longest with %d nodes, in %d states", lengths, longest, states)
	if lengths < cases/2 || longest < 5 {
		t.Errorf("only %d of %d cases had a ranking, the longest has %d nodes", lengths, cases, longest)
	}
}

// chainCase is a cluster, a decision about a pod and copies of that pod on the
// listed nodes.
type chainCase struct {
	*cluster.Generator
	r        *realScheduler
	nodes    []*corev1.Node
	running  []*corev1.Pod
	pod      *corev1.Pod
	decision scoring.Decision
	// copies: listed node -> how many copies are added to it.
	copies map[string]int
}

// newChainCase draws a cluster without what breaks an assumption, and decides.
func newChainCase(t *testing.T, r *realScheduler, cfg config.Configuration, seed uint64) *chainCase {
	t.Helper()
	g := cluster.NewGenerator(seed)
	g.Plain = true
	c := &chainCase{Generator: g, r: r, nodes: g.Nodes(2 + g.IntN(14)), copies: map[string]int{}}
	for _, n := range c.nodes {
		n.Status.Allocatable[cluster.NVIDIA] = *resource.NewQuantity(int64(cluster.One(g, 2, 4, 8, 8, 16)), resource.DecimalSI)
		if g.Chance(70) {
			n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(cluster.One(g, "31850m", "96"))
			n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse(cluster.One(g, "260923160Ki", "1152Gi"))
		}
	}
	user := g.Incoming()
	c.running = g.Running(c.nodes, g.IntN(2*len(c.nodes)))
	for range g.IntN(len(c.nodes)) { // pods of the same kind run already
		c.running = append(c.running, c.copyOn(user, cluster.One(g, c.nodes...).Name))
	}
	ours := newProduct(t, cfg, c.nodes, c.running)
	c.decision = ours.Decide(user)
	c.pod = stored(user, c.decision)
	return c
}

// copyOn is a copy of the pod that runs on a node.
func (c *chainCase) copyOn(pod *corev1.Pod, node string) *corev1.Pod {
	c.Count++
	p := stored(pod, scoring.Decision{})
	p.Name = fmt.Sprintf("copy-%03d", c.Count)
	p.UID = types.UID(p.Name)
	p.Spec.NodeName = node
	return p
}

// room is how many more copies the scheduler would let onto a node.
func (c *chainCase) room(node string) int {
	at := slices.IndexFunc(c.nodes, func(n *corev1.Node) bool { return n.Name == node })
	allocatable := c.nodes[at].Status.Allocatable
	asked, _ := demand.Of(c.pod, config.Default().Resources)
	room := 64
	for _, g := range asked.GPUs {
		total := allocatable[g.Name]
		room = min(room, int(total.Value()/g.Count))
	}
	return room
}

// fillAnyhow puts a random number of copies onto each listed node; the filters of
// the scheduler decide who is full.
func (c *chainCase) fillAnyhow() {
	for _, n := range c.decision.Ranking {
		c.copies[n.Name] = 0
		if c.Chance(60) {
			c.copies[n.Name] = c.IntN(c.room(n.Name) + 1)
		}
	}
}

func (c *chainCase) fillNothing() { clear(c.copies) }

// fillFirst adds one more copy to the first listed node; it is false when no more
// may fit.
func (c *chainCase) fillFirst() bool {
	first := c.decision.Ranking[0].Name
	c.copies[first]++
	return c.copies[first] <= c.room(first)
}

// opinion loads the present state into the scheduler, leaving out copies that do
// not fit, and asks it about the pod.
func (c *chainCase) opinion(t *testing.T) *opinion {
	t.Helper()
	c.r.load(t, c.nodes, c.running)
	for _, n := range c.decision.Ranking {
		for range c.copies[n.Name] {
			if _, ok := c.r.consider(t, c.pod).feasible[n.Name]; !ok {
				break
			}
			c.r.addPod(t, c.copyOn(c.pod, n.Name))
			c.r.refresh(t)
		}
	}
	return c.r.consider(t, c.pod)
}

// checkOrder checks the listed nodes against each other.
func (c *chainCase) checkOrder(t *testing.T) {
	t.Helper()
	o := c.opinion(t)
	totals := o.score(t, o.all())
	for k, earlier := range c.decision.Ranking {
		for _, later := range c.decision.Ranking[k+1:] {
			a, b := totals[earlier.Name], totals[later.Name]
			if a.plugins == nil || b.plugins == nil || earlier.Weight == later.Weight {
				continue // one of them is full, or they share a weight on purpose
			}
			if a.total <= b.total {
				t.Errorf("%s (weight %d): %+v\nloses to %s (weight %d): %+v\ncopies %v", earlier.Name, earlier.Weight, a, later.Name, later.Weight, b, c.copies)
			}
		}
		if totals[earlier.Name].plugins != nil {
			break // later pairs matter when this node is full
		}
	}
	if t.Failed() {
		c.describe(t)
		t.FailNow()
	}
}

// checkUnlisted checks the first listed node against all without a term.
func (c *chainCase) checkUnlisted(t *testing.T) {
	t.Helper()
	if c.decision.UnlistedMayWin {
		return
	}
	o := c.opinion(t)
	totals := o.score(t, o.all())
	first, ok := totals[c.decision.Ranking[0].Name]
	if !ok {
		return
	}
	for name, s := range totals {
		listed := slices.ContainsFunc(c.decision.Ranking, func(n scoring.RankedNode) bool { return n.Name == name })
		if !listed && s.total >= first.total {
			c.describe(t)
			t.Fatalf("%s %+v\nloses to %s without a term: %+v\ncopies %v", c.decision.Ranking[0].Name, first, name, s, c.copies)
		}
	}
}

func (c *chainCase) describe(t *testing.T) {
	t.Helper()
	t.Logf("decision %+v", c.decision)
	describe(t, c.nodes, c.r.pods, c.pod)
}
