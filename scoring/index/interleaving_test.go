package index_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// lateWorld is a cluster in which everybody learns what happens late, each by a delay of its
// own that changes all the time: two replicas, and a scheduler that binds while pods are
// still being created. Times are in milliseconds.
type lateWorld struct {
	random   *rand.Rand
	replicas []*clustertest.Cluster
	// delay is how late a watch is at most, store how long creating a pod takes, pace how
	// long the scheduler takes for one, and bind until its binding is stored.
	delay, store, pace, bind int
	events                   []lateEvent
	// watchers are when the last event reached each watch: events come in order.
	watchers map[string]int
	free     map[string]int
	bound    map[string]int
}

// lateEvent is something that happens at a time; seq orders those of one time.
type lateEvent struct {
	at, seq int
	do      func(now int)
}

func (w *lateWorld) after(now, delay int, do func(now int)) {
	w.events = append(w.events, lateEvent{now + delay, len(w.events), do})
}

// watched lets a watch deliver something, after those before.
func (w *lateWorld) watched(watch string, now int, do func(now int)) {
	at := max(now+w.random.IntN(w.delay+1), w.watchers[watch])
	w.watchers[watch] = at
	w.after(at, 0, do)
}

// run does what is to happen until nothing is left.
func (w *lateWorld) run() {
	done := map[int]bool{}
	for {
		var next *lateEvent
		for i := range w.events {
			e := &w.events[i]
			if !done[e.seq] && (next == nil || cmp.Or(cmp.Compare(e.at, next.at), cmp.Compare(e.seq, next.seq)) < 0) {
				next = e
			}
		}
		if next == nil {
			return
		}
		done[next.seq] = true
		next.do(next.at)
	}
}

// create lets some replica decide about a pod; then it is stored, and everybody learns
// of it.
func (w *lateWorld) create(now int, uid string, queue *[]*corev1.Pod) {
	d := w.replicas[w.random.IntN(len(w.replicas))].DecideOn(clustertest.GPUPod(uid, clustertest.Usual))
	pod := clustertest.GPUPod(uid, clustertest.Usual, clustertest.SteeredBy(d, types.UID(uid)))
	w.after(now, w.random.IntN(w.store+1), func(now int) {
		w.tell(now, pod)
		w.watched("scheduler", now, func(int) { *queue = append(*queue, pod) })
	})
}

// createBatches creates pods as the controller of a ReplicaSet does: one, then twice as
// many as before at a time, each batch when the last one is stored.
func (w *lateWorld) createBatches(now, batch, created, pods int, queue *[]*corev1.Pod) {
	batch = min(batch, pods-created)
	if batch == 0 {
		return
	}
	last := 0
	for i := range batch {
		at := w.random.IntN(w.store + 1)
		last = max(last, at)
		w.after(now, at, func(now int) { w.create(now, fmt.Sprintf("p%d", created+i), queue) })
	}
	w.after(now, last+w.store, func(now int) { w.createBatches(now, 2*batch, created+batch, pods, queue) })
}

// tell lets the replicas learn of a pod as it is now.
func (w *lateWorld) tell(now int, pod *corev1.Pod) {
	for i, r := range w.replicas {
		w.watched(fmt.Sprint("replica", i), now, func(int) { r.SetPod(pod) })
	}
}

// scheduleAll binds the pods that the scheduler knows of, one a millisecond, until so
// many are bound.
func (w *lateWorld) scheduleAll(now, pods int, queue *[]*corev1.Pod) {
	if len(*queue) > 0 {
		pod := (*queue)[0]
		*queue = (*queue)[1:]
		node := w.choose(pod)
		w.free[node]--
		w.bound[node]++
		pods--
		bound := pod.DeepCopy()
		bound.Spec.NodeName = node
		w.after(now, w.random.IntN(w.bind+1), func(now int) { w.tell(now, bound) })
	}
	if pods > 0 {
		w.after(now, 1+w.random.IntN(w.pace+1), func(now int) { w.scheduleAll(now, pods, queue) })
	}
}

// choose is what the scheduler does with the terms: the first listed node with room, the
// emptiest if there is none.
func (w *lateWorld) choose(pod *corev1.Pod) string {
	for _, name := range steering.Listed(pod) {
		if w.free[name] > 0 {
			return name
		}
	}
	emptiest := ""
	for name, free := range w.free {
		if emptiest == "" || free > w.free[emptiest] || free == w.free[emptiest] && name < emptiest {
			emptiest = name
		}
	}
	return emptiest
}

// play plays a burst of pods on nodes with 8 GPUs and returns how many pods each node got.
// The seed decides about everything: how late the watches are, how long creating and
// binding take, and who is called.
func play(t *testing.T, seed uint64, nodes, pods int) map[string]int {
	random := rand.New(rand.NewPCG(seed, 7))
	oneOf := func(values ...int) int { return values[random.IntN(len(values))] }
	w := &lateWorld{
		random: random, delay: oneOf(5, 30, 100, 300), store: oneOf(5, 50, 200), pace: oneOf(1, 5, 20), bind: oneOf(10, 100, 400),
		watchers: map[string]int{}, free: map[string]int{}, bound: map[string]int{},
	}
	for range 2 {
		r := clustertest.New(t, nil)
		for i := range nodes {
			name := fmt.Sprintf("n%02d", i)
			r.SetNode(clustertest.GPUNode(name, clustertest.List(clustertest.NVIDIA, strconv.Itoa(gpusOfNode))))
			w.free[name] = gpusOfNode
		}
		r.SetReplicas(2, 0)
		w.replicas = append(w.replicas, r)
	}
	var queue []*corev1.Pod
	w.createBatches(0, 1, 0, pods, &queue)
	w.scheduleAll(0, pods, &queue)
	w.run()
	return w.bound
}

// A burst of 64 pods on 16 nodes takes 8 of them, however late two replicas learn of each
// other's pods and of what the scheduler does meanwhile. As long as what a replica sees
// fills the nodes in the order that both have, a node comes first only when all before it
// are full with pods that were decided about earlier, so no more pods are left than fit on
// it and those after it up to the eighth. But bindings arrive one by one and out of order,
// and a pod that is seen to be bound elsewhere than expected leaves a hole, into which the
// last pod was steered, past the node that only seemed full: before moveUp in 145 of 1,500
// runs, those of the first seeds among them. What is left needs two pods to change places
// before a third can be moved up: 3 of 6,000 runs.
func TestBurstWhateverTheOrder(t *testing.T) {
	const nodes, pods = 16, 64
	seeds := []uint64{866, 871, 888, 941, 986, 1004, 1005, 1016}
	for seed := range uint64(300) {
		seeds = append(seeds, 10000+seed)
	}
	for _, seed := range seeds {
		if bound := play(t, seed, nodes, pods); len(bound) != pods/gpusOfNode {
			t.Errorf("seed %d: %d nodes used, want %d: %v", seed, len(bound), pods/gpusOfNode, bound)
		}
	}
}
