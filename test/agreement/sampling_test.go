package agreement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// In a cluster of many nodes the scheduler examines only a window of its node
// order, from a start that moves on with every pod. Whatever the start: the window
// holds a listed node, a listed node wins, and the earliest one of those listed in
// order.
func TestWindowsOfLargeClusters(t *testing.T) {
	for _, tc := range []struct {
		nodes, zones int
		// occupied nodes, neighbours, have one pod each.
		occupied int
	}{
		{nodes: 300, zones: 1, occupied: 0},
		{nodes: 1000, zones: 3, occupied: 0},
		{nodes: 1000, zones: 3, occupied: 400},
		{nodes: 1000, zones: 1, occupied: 30},
		{nodes: 5000, zones: 3, occupied: 10},
	} {
		t.Run(fmt.Sprintf("%d nodes, %d occupied", tc.nodes, tc.occupied), func(t *testing.T) {
			nodes := zonedNodes(tc.nodes, tc.zones)
			var running []*corev1.Pod
			for i := range tc.occupied {
				running = append(running, smallPod(fmt.Sprintf("running-%d", i), "1", nodes[i].Name))
			}
			pod := smallPod("new", "1", "")
			d := newProduct(t, config.Default(), nodes, running).Decide(pod)
			r := newRealScheduler(t, nil)
			r.load(t, nodes, defaulted(running))
			o := r.consider(t, stored(pod, d))
			const windows = 100
			for i := range windows {
				start := i * tc.nodes / windows
				if !checkWindow(t, o, o.window(t, start), d) {
					t.Errorf("the window from %d holds none of the %d listed nodes", start, len(d.Ranking))
				}
			}
			t.Logf("%d nodes in order and %d more", len(d.Ranking)-d.Tail, d.Tail)
		})
	}
}

// checkWindow checks who wins among the nodes of a window; it is false when none
// of them is listed.
func checkWindow(t *testing.T, o *opinion, window []string, d scoring.Decision) bool {
	t.Helper()
	totals := o.score(t, window)
	var best string
	for name, s := range totals {
		if best == "" || s.total > totals[best].total {
			best = name
		}
	}
	head := len(d.Ranking) - d.Tail
	for i, n := range d.Ranking {
		if _, ok := totals[n.Name]; !ok {
			continue
		}
		if i < head && best != n.Name {
			t.Errorf("%s wins with %+v; %s, the %d. of the list, has %+v", best, totals[best], n.Name, i+1, totals[n.Name])
		}
		if i >= head && totals[best].plugins[nodeAffinity] == 0 {
			t.Errorf("%s wins, which is not listed; %s of the tail has %+v", best, n.Name, totals[n.Name])
		}
		return true
	}
	return false
}

// window returns the feasible nodes that the scheduler would examine from that
// start in its node order. Source: pkg/scheduler/schedule_one.go,
// findNodesThatPassFilters and numFeasibleNodesToFind.
func (o *opinion) window(t *testing.T, start int) []string {
	t.Helper()
	order, err := o.r.snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	size := max(len(order)*max(50-len(order)/125, 5)/100, 100)
	var window []string
	for i := range order {
		name := order[(start+i)%len(order)].Node().Name
		if _, ok := o.feasible[name]; ok && len(window) < size {
			window = append(window, name)
		}
	}
	return window
}

// zonedNodes are equal nodes with 8 GPUs, in zones by turns.
func zonedNodes(count, zones int) []*corev1.Node {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("node-%04d", i)
	}
	nodes := bigNodes(names...)
	for i, n := range nodes {
		n.UID = types.UID(n.Name)
		n.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("zone-%d", i%zones)
	}
	return nodes
}
