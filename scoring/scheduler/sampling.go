package scheduler

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"k8s.io/component-helpers/node/topology"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// The scheduler's sampling: at least this many nodes, at least this share.
// Source: k8s.io/kubernetes pkg/scheduler/schedule_one.go, numFeasibleNodesToFind.
const (
	minFeasibleNodes   = 100
	minFeasiblePercent = 5
)

// Examined is how many feasible nodes the scheduler looks for in a cluster
// of that many nodes.
func Examined(cfg *config.Scheduler, count int) int {
	percent := int(cfg.PercentageOfNodesToScore)
	if percent == 0 {
		percent = max(50-count/125, minFeasiblePercent)
	}
	return max(count*percent/100, min(count, minFeasibleNodes))
}

// Order estimates the order in which the scheduler goes through nodes: by
// zones in turn, in each as they came, which is by name for those that were there
// when it started. Nodes of one pool, which share size and use, are neighbours
// then. It is computed when first needed.
// Source: k8s.io/kubernetes pkg/scheduler/backend/cache/node_tree.go.
type Order struct {
	nodes []*nodes.State // only names, zones and slots are used
	once  sync.Once
	place []int
}

// NewOrder returns the order of the nodes that there are now.
func NewOrder(states []*nodes.State) *Order { return &Order{nodes: slices.Clone(states)} }

// Places returns the place of each node, by its slot.
func (o *Order) Places() []int {
	o.once.Do(func() {
		type zoned struct {
			*nodes.Node
			turn int
			zone string
		}
		list, slots := make([]zoned, len(o.nodes)), 0
		for i, n := range o.nodes {
			list[i] = zoned{Node: n.Node, zone: topology.GetZoneKey(n.Object)}
			slots = max(slots, n.Slot+1)
		}
		slices.SortFunc(list, func(a, b zoned) int { return strings.Compare(a.Name, b.Name) })
		turns := map[string]int{}
		for i := range list {
			list[i].turn = turns[list[i].zone]
			turns[list[i].zone]++
		}
		slices.SortStableFunc(list, func(a, b zoned) int { return cmp.Compare(a.turn, b.turn) })
		o.place = make([]int, slots)
		for place, z := range list {
			o.place[z.Slot] = place
		}
		o.nodes = nil
	})
	return o.place
}
