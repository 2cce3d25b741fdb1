package binary

import (
	"flag"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

var (
	firstSeed = flag.Uint64("seed", 0, "the seed of the first random cluster; the next ones follow")
	clusters  = flag.Int("clusters", 10, "how many random clusters are made")
	probes    = flag.Int("pods", 12, "how many pods are scheduled in each cluster")
)

// maxFailed is after how many pods whose scores differ the test ends.
const maxFailed = 20

// sameResizes is the version from which on the model counts pods that are being
// resized in place as the scheduler does. Before, the scheduler takes the largest of
// desired, allocated and actual requests of each container, since then of their sums
// over the pod. Older versions get no such pods: a resize takes seconds.
var sameResizes = version.MustParseGeneric("1.37")

// Scores that a running kube-scheduler gives, plugin by plugin and node by node,
// equal the model's for its version. The same seed makes the same nodes and pods;
// where a pod goes among equals is up to the scheduler.
func TestScoresAgree(t *testing.T) {
	b := newBed(t)
	result := newTally()
	for i := range *clusters {
		c := newCluster(t, b, *firstSeed+uint64(i))
		unschedulable := 0
		for range *probes {
			if c.probe(t, result) == "" {
				unschedulable++
			}
		}
		t.Logf("cluster %d of %d: %d nodes, %d pods, %d of them fit nowhere", i+1, *clusters, len(c.nodes), *probes, unschedulable)
		c.remove(t)
		if result.failed >= maxFailed {
			t.Errorf("stopped after %d pods whose scores differ", result.failed)
			break
		}
	}
	for name, n := range result.counts {
		t.Logf("%s: %d compared, %d different scores, %d pods whose nodes differ", name, n.Compared, len(n.scores), n.contrasts)
		if n.Compared < 100 || len(n.scores) < 3 || n.contrasts < 10 {
			t.Errorf("%s: too few comparisons", name)
		}
	}
	if err := result.write("v" + b.version.String()); err != nil {
		t.Fatal(err)
	}
}

// probe lets the scheduler schedule one pod, compares, and returns the pod's node,
// or "" when it fits nowhere.
func (c *randomCluster) probe(t *testing.T, result *tally) string {
	t.Helper()
	pod := c.incoming(t)
	node := c.waitScheduled(t, pod)
	// The scheduler logs before it binds, or reports that it cannot.
	if err := c.log.read(); err != nil {
		t.Fatal(err)
	}
	predicted, _ := c.ours.Scorer.Predict(pod)
	compared := comparison{t: t, seed: c.seed, pod: pod, weights: &c.cfg.Scheduler.PluginWeights, counts: result.counts}
	compared.compare(predicted, c.log.scores[podKey(pod)], node)
	if compared.failed {
		result.failed++
	}
	c.finish(t, pod, node)
	return node
}

// tally counts the comparisons of all pods.
type tally struct {
	// counts: name of a plugin, or total -> its comparisons.
	counts map[string]*count
	// failed is how many pods had scores that differ.
	failed int
}

// count is what became of the comparisons of one plugin.
type count struct {
	Compared  int `json:"compared"`
	Differing int `json:"differing"`
	// scores are those that came up, and contrasts how many pods had different
	// scores on different nodes: equal zeros would prove nothing.
	scores    map[int64]bool
	contrasts int
}

func newTally() *tally {
	r := &tally{counts: map[string]*count{total: {scores: map[int64]bool{}}}}
	for name := range plugins {
		r.counts[name] = &count{scores: map[int64]bool{}}
	}
	return r
}

// write prints the summary and writes the report; running is the version.
func (r *tally) write(running string) error {
	compared, differing := 0, 0
	for name, n := range r.counts {
		if name != total {
			compared, differing = compared+n.Compared, differing+n.Differing
		}
	}
	outcome := "all equal"
	if r.failed > 0 {
		outcome = fmt.Sprintf("%d differ, of %d pods", differing, r.failed)
	}
	fmt.Printf("compared %d scores of %d plugins on kube-scheduler %s: %s\n", compared, len(plugins), running, outcome)
	path, err := reports.Path("scores-" + running + ".json")
	if err != nil {
		return err
	}
	return reports.Write(path, map[string]any{"version": running, "plugins": r.counts})
}
