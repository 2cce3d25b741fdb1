package scheduler_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

const gpusOfNode = 8

// burst is pods for half of all nodes, created at once and decided about by two
// replicas, in random order. Each sees a pod when so many others were decided about
// since. Nothing is bound while the burst lasts.
type burst struct {
	nodes, lag int
	seed       uint64
	configure  func(*config.Configuration)
}

// decide returns the pods in the order of their creation.
func (b burst) decide(t *testing.T, nodes []string) (created []*corev1.Pod) {
	random := rand.New(rand.NewPCG(b.seed, 1))
	clusters := make([]*clustertest.Cluster, 2)
	for r := range clusters {
		clusters[r] = clustertest.New(t, b.configure)
		for _, name := range nodes {
			clusters[r].SetNode(clustertest.GPUNode(name, clustertest.List(clustertest.NVIDIA, strconv.Itoa(gpusOfNode))))
		}
		clusters[r].SetOwnNamespace("own")
		for i := range clusters {
			clusters[r].SetPod(replica(fmt.Sprint("replica-", i)))
		}
		if got := clusters[r].Size().Replicas; got != len(clusters) {
			t.Fatalf("%d replicas are known, want %d", got, len(clusters))
		}
	}
	seen := 0
	for i := range b.nodes * gpusOfNode / 2 {
		c := clusters[random.IntN(len(clusters))]
		uid := fmt.Sprintf("p%d", i)
		d := c.DecideOn(clustertest.GPUPod(uid, clustertest.Usual))
		created = append(created, clustertest.GPUPod(uid, clustertest.Usual, clustertest.SteeredBy(d, types.UID(uid))))
		for ; seen < i-b.lag; seen++ {
			for _, one := range clusters {
				one.SetPod(created[seen])
			}
		}
	}
	return created
}

// replica is a pod of the webhook that is ready.
func replica(uid string) *corev1.Pod {
	return clustertest.GPUPod(uid, nil, func(p *corev1.Pod) {
		p.Namespace = "own"
		p.Labels = map[string]string{config.LabelName: config.WebhookPodName, config.LabelComponent: config.WebhookPodComponent}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
}

// weighted returns how many nodes a scheduler takes that examines all nodes and, of
// those with the same weight, takes the emptiest.
func (b burst) weighted(t *testing.T) (taken int) {
	free := map[string]int{}
	var nodes []string
	for i := range b.nodes {
		nodes = append(nodes, fmt.Sprintf("n%03d", i))
		free[nodes[i]] = gpusOfNode
	}
	for _, pod := range b.decide(t, nodes) {
		weights := map[string]int32{}
		for _, term := range steering.PreferredTerms(pod) {
			weights[term.Preference.MatchFields[0].Values[0]] = term.Weight
		}
		slices.SortStableFunc(nodes, func(a, b string) int {
			return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(free[b], free[a]), cmp.Compare(a, b))
		})
		first := slices.IndexFunc(nodes, func(name string) bool { return free[name] > 0 })
		free[nodes[first]]--
	}
	for _, left := range free {
		if left < gpusOfNode {
			taken++
		}
	}
	return taken
}

// Before 1.36 weights suffice for the order of 11 nodes. Bursts of 240 pods that two
// replicas see 90 to 240 pods late use fewer nodes with a list of 14, of which the last
// four share a weight, than with one of 11.
func TestListOfTwoReplicas(t *testing.T) {
	mean := func(maxTerms int) float64 {
		taken, runs := 0, 0
		for lag := 90; lag <= 240; lag += 30 {
			for seed := range uint64(8) {
				taken += burst{nodes: 60, lag: lag, seed: seed, configure: func(c *config.Configuration) {
					c.Scheduler.KubernetesVersion, c.Weights.MaxTerms = "1.35", maxTerms
				}}.weighted(t)
				runs++
			}
		}
		return float64(taken) / float64(runs)
	}
	inOrder, shared := mean(11), mean(config.Default().Weights.MaxTerms)
	t.Logf("of 30 nodes: %.2f with 11 in order, %.2f with the default", inOrder, shared)
	if shared >= inOrder {
		t.Errorf("%.2f nodes are used with the default, %.2f with 11 in order", shared, inOrder)
	}
}
