package pool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
)

// A pool that was made some time ago and catches up is as one that is made now: as lists
// and as trees, and also when nodes went and came again in another slot.
func TestCatchUp(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 2))
	for range 100 {
		c := clustertest.New(t, nil)
		changeNodes(random, c, 60)
		lists, trees := makePool(t, c), makePool(t, c)
		trees.MakeTrees()
		for range 3 {
			changeNodes(random, c, random.IntN(60))
			behind := lists.Behind(statesBySlot(c))
			lists.CatchUp(statesBySlot(c))
			trees.CatchUp(statesBySlot(c))
			if left := lists.Behind(statesBySlot(c)); left != 0 {
				t.Fatalf("%d nodes behind, %d after catching up", behind, left)
			}
			want := describe(c, makePool(t, c).View())
			if diff := cmp.Diff(want, describe(c, lists.View())); diff != "" {
				t.Fatalf("lists, %d nodes behind (-new +caught up):\n%s", behind, diff)
			}
			if diff := cmp.Diff(want, describe(c, trees.View())); diff != "" {
				t.Fatalf("trees, %d nodes behind (-new +caught up):\n%s", behind, diff)
			}
		}
	}
}

// changeNodes lets nodes and pods come, go and change.
func changeNodes(random *rand.Rand, c *clustertest.Cluster, times int) {
	for range times {
		name := "n" + strconv.Itoa(random.IntN(12))
		switch random.IntN(6) {
		case 0:
			c.DeleteNode(name)
		case 1, 2:
			option := func(*corev1.Node) {}
			if random.IntN(4) == 0 {
				option = []clustertest.NodeOption{clustertest.Cordoned, clustertest.Tainted("team", corev1.TaintEffectNoSchedule), clustertest.Labelled("pool", "other"), func(n *corev1.Node) { delete(n.Labels, corev1.LabelHostname) }}[random.IntN(4)]
			}
			c.SetNode(clustertest.GPUNode(name, clustertest.List(clustertest.NVIDIA, strconv.Itoa(random.IntN(3)*4)), option))
		case 3:
			c.DeletePod(clustertest.GPUPod("p"+strconv.Itoa(random.IntN(20)), nil).UID)
		default:
			c.SetPod(clustertest.GPUPod("p"+strconv.Itoa(random.IntN(20)), clustertest.List(clustertest.NVIDIA, strconv.Itoa(1+random.IntN(3))), clustertest.On(name)))
		}
	}
}

// kindOfTest is what the pools of the test are for: pods with a node selector.
func kindOfTest() *corev1.Pod {
	return clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "2"))
}

func makePool(t *testing.T, c *clustertest.Cluster) *pool.Pool {
	t.Helper()
	q := c.QueryOf(kindOfTest())
	made, err := pool.Make(t.Context(), pool.KindOf(q.Pod, q.Demand), q.Pod, q.Demand, pool.NewOrdering(c.Config.Ranking, nodes.DefaultCompanions), statesBySlot(c))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func statesBySlot(c *clustertest.Cluster) []*nodes.State {
	var bySlot []*nodes.State
	states, _ := c.States()
	for _, s := range states {
		for s.Slot >= len(bySlot) {
			bySlot = append(bySlot, nil)
		}
		bySlot[s.Slot] = s
	}
	return bySlot
}

// describe says what readers see: both orders, parts of the scattered one, and the counts.
func describe(c *clustertest.Cluster, v pool.View) []string {
	out := []string{fmt.Sprint(v.Entries.Len(), v.Scattered.Len(), v.Matching, v.WithoutHostname)}
	v.Entries.Ascend(func(e pool.Entry) bool {
		out = append(out, fmt.Sprintf("%s in %d, key %+v used %+v", e.State.Name, e.State.Slot, e.Key, e.State.Used))
		return true
	})
	note := func(what string) func(pool.Place) bool {
		return func(p pool.Place) bool {
			out = append(out, fmt.Sprint(what, p.Slot, p.Class))
			return true
		}
	}
	v.Scattered.Ascend(note("scattered"))
	states, _ := c.States()
	slices.SortFunc(states, func(a, b *nodes.State) int { return nodes.CompareNodes(a.Node, b.Node) })
	for _, s := range states {
		for class := range pool.Classes {
			from := pool.PlaceFrom(class, s.Node)
			v.Scattered.AscendGreaterOrEqual(from, note(fmt.Sprint("from ", s.Name)))
			v.Scattered.AscendRange(pool.Place{Class: class}, from, note(fmt.Sprint("before ", s.Name)))
		}
	}
	return out
}

// Making a pool ends with its context, in a cluster of any size.
func TestMakeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, size := range []int{1, 1000} {
		c := clustertest.New(t, nil)
		for i := range size {
			c.SetNode(clustertest.GPUNode(fmt.Sprint("n", i), clustertest.List(clustertest.NVIDIA, "8")))
		}
		q := c.QueryOf(kindOfTest())
		made, err := pool.Make(ctx, pool.KindOf(q.Pod, q.Demand), q.Pod, q.Demand, pool.NewOrdering(c.Config.Ranking, nodes.DefaultCompanions), statesBySlot(c))
		if made != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%d nodes: made %v, error %v", size, made != nil, err)
		}
	}
}

// BenchmarkMake is what a pod of a new kind costs: with lists only if its pool is not kept.
func BenchmarkMake(b *testing.B) {
	for _, size := range []int{1000, 5000, 15000} {
		c := clustertest.New(b, nil)
		for i := range size {
			name := fmt.Sprint("n", i)
			c.SetNode(clustertest.GPUNode(name, clustertest.List(clustertest.NVIDIA, "8")))
			for j := range i % 5 {
				c.SetPod(clustertest.GPUPod(fmt.Sprint("p", i, "-", j), clustertest.List(clustertest.NVIDIA, "1", "cpu", "4"), clustertest.On(name)))
			}
		}
		q, states := c.QueryOf(kindOfTest()), statesBySlot(c)
		kind, by := pool.KindOf(q.Pod, q.Demand), pool.NewOrdering(c.Config.Ranking, nodes.DefaultCompanions)
		for name, keep := range map[string]bool{"lists": false, "trees": true} {
			b.Run(fmt.Sprintf("nodes=%d/%s", size, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					made, err := pool.Make(b.Context(), kind, q.Pod, q.Demand, by, states)
					if err != nil {
						b.Fatal(err)
					}
					if keep {
						made.MakeTrees()
					}
				}
			})
		}
	}
}
