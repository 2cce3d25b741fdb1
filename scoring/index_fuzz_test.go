package scoring

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// FuzzIndexEvents drives the index with events and decisions made from bytes, in
// any order and of any kind. At no time is usage negative or anything but the sum
// of what is charged; in the end the index equals one that saw only the last state
// of every object, and it is empty when all objects are gone.
func FuzzIndexEvents(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		f.Add(randomEvents(random))
	}
	f.Fuzz(checkEvents)
}

// The same for some hundred sequences, always the same ones, in every run of the
// tests.
func TestIndexEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 250 {
		if checkEvents(t, randomEvents(random)); t.Failed() {
			return
		}
	}
}

func randomEvents(random *rand.Rand) []byte {
	data := make([]byte, 50+random.IntN(600))
	for i := range data {
		data[i] = byte(random.UintN(256))
	}
	return data
}

func checkEvents(t *testing.T, data []byte) {
	w := newWorld(t, data[:min(len(data), 1000)]) // more events would only take longer
	for len(w.data) > 0 {
		w.event()
		w.checkSums()
		w.checkPools()
	}
	w.checkRebuilt()
	w.checkEmptied()
}

// checkSums checks that what is used on each node is what the index says is
// charged to it, and that this is never negative.
func (w *world) checkSums() {
	w.t.Helper()
	w.snapshot() // lets end what is over
	want := map[string]load{}
	for _, r := range w.ledger.pods {
		if r.applied {
			want[r.node] = want[r.node].plus(1, *r.load)
		}
	}
	for _, r := range w.reservations.byUID {
		want[r.node] = want[r.node].plus(1, r.load)
	}
	for _, h := range w.replicas.held {
		if h.charged && !h.over {
			want[h.node] = want[h.node].plus(1, h.load)
		}
	}
	for name, state := range w.usage.states {
		if !state.used.equal(want[name]) {
			w.t.Fatalf("used on %s: %+v, but charged: %+v", name, state.used, want[name])
		}
		delete(want, name)
		for _, all := range []amounts{state.used.requests, state.used.occupants, state.used.terminating} {
			for _, a := range all {
				if a.value <= 0 {
					w.t.Fatalf("%d of %s used on %s", a.value, a.name, name)
				}
			}
		}
		if state.used.pods < 0 || state.used.scoringCPU < 0 || state.used.scoringMemory < 0 {
			w.t.Fatalf("negative usage on %s: %+v", name, state.used)
		}
	}
	for name, l := range want {
		if l.pods != 0 {
			w.t.Fatalf("%+v is charged to %s, which has no state", l, name)
		}
	}
}

// checkRebuilt compares the index with a new one, when nothing is in flight any
// more: where a pod is expected depends on what was free when it came.
func (w *world) checkRebuilt() {
	w.t.Helper()
	w.clock = w.clock.Add(inFlightIsOver)
	rebuilt := newCluster(w.t, nil)
	rebuilt.clock = w.clock
	rebuilt.synced.Store(false) // ages count from creation, as after a restart
	for namespace, enabled := range w.namespaceObjects {
		rebuilt.SetNamespace(namespace, enabled)
	}
	for _, p := range w.podObjects {
		rebuilt.SetPod(p)
	}
	for _, n := range w.nodeObjects {
		rebuilt.SetNode(n)
	}
	if diff := cmp.Diff(describe(rebuilt), describe(w.testCluster)); diff != "" {
		w.t.Fatalf("(-rebuilt +index):\n%s", diff)
	}
	want, got := rebuilt.Size(), w.Size()
	// What happened in the past: refusals, and how long a pod has been waiting.
	got.Backoff, want.Backoff, got.Pods, want.Pods = 0, 0, 0, 0
	if want != got {
		w.t.Fatalf("size %+v, rebuilt %+v", got, want)
	}
}

// checkEmptied deletes all objects and looks for what is left.
func (w *world) checkEmptied() {
	w.t.Helper()
	for uid := range w.podObjects {
		w.DeletePod(uid)
	}
	for name := range w.nodeObjects {
		w.DeleteNode(name)
	}
	if size := w.Size(); size != (IndexSize{}) {
		w.t.Errorf("size %+v without any object", size)
	}
	leaks := map[string]int{
		"states": len(w.usage.states), "positions": len(w.usage.position), "expiries": len(w.expiries), "targets": len(w.ledger.targets), "expected": len(w.ledger.expected),
		"images": len(w.images.table), "CPU counts": int(w.ledger.perGPU.cpu.total), "memory counts": int(w.ledger.perGPU.memory.total),
		"pods that may be refused": len(w.backoffs.pending), "pending pods": len(w.unsteered.seen),
	}
	for what, count := range leaks {
		if count != 0 {
			w.t.Errorf("%d %s left without any object", count, what)
		}
	}
}

// inFlightIsOver is longer than anything in flight counts.
const inFlightIsOver = 2 * time.Hour

// decideOne decides about a pod and checks the decision against the objects.
func (w *world) decideOne() {
	w.t.Helper()
	pod := w.newPod("request")
	request := Request{Pod: pod, Namespace: pod.Namespace, UID: w.uid(), FirstUID: w.uid(), DryRun: w.next()%4 == 0}
	before := w.Size().Reservations
	d := w.Decide(w.t.Context(), request)
	if request.DryRun && w.Size().Reservations != before {
		w.t.Fatalf("a dry run moved the reservations from %d to %d", before, w.Size().Reservations)
	}
	if d.Reason != ReasonNone {
		return
	}
	weight := int32(maxWeight)
	for _, n := range d.Ranking {
		node := w.nodeObjects[n.Name]
		if node == nil || node.Spec.Unschedulable || n.Weight < 1 || n.Weight > weight {
			w.t.Fatalf("ranked %+v after weight %d; the node is %v", n, weight, node)
		}
		weight = n.Weight
	}
	if request.DryRun {
		return
	}
	state := w.usage.states[d.Target()]
	demand, _ := NewDemand(pod, w.Index.cfg.Resources)
	for _, r := range demand.requests {
		if used, there := state.used.requests.get(r.name), state.allocatable.get(r.name); used > there {
			w.t.Fatalf("the target has %d of %s used of %d", used, r.name, there)
		}
	}
}

// uid is one of a few, so that they meet again.
func (w *world) uid() types.UID { return types.UID("u" + strconv.Itoa(w.next()%6)) }

// relist is what a reflector does after a gap in the watch, in which one object may
// have gone, and a pod come again under its name.
func (w *world) relist() {
	w.t.Helper()
	var objects []any
	switch w.next() % 3 {
	case 0:
		uid := types.UID("p" + strconv.Itoa(w.next()%8))
		if old := w.podObjects[uid]; old != nil {
			delete(w.podObjects, uid)
			if w.next()%2 == 0 {
				renewed := old.DeepCopy()
				renewed.UID += "-again"
				w.podObjects[renewed.UID] = renewed
			}
		}
		for _, pod := range w.podObjects {
			objects = append(objects, pod.DeepCopy())
		}
		w.must(FeedPods(w.Index).Replace(objects, ""))
	case 1:
		delete(w.nodeObjects, w.nodeName())
		for _, node := range w.nodeObjects {
			objects = append(objects, node.DeepCopy())
		}
		w.must(FeedNodes(w.Index).Replace(objects, ""))
	case 2:
		delete(w.namespaceObjects, "team")
		for name, enabled := range w.namespaceObjects {
			objects = append(objects, namespace(name, enabled))
		}
		w.must(FeedNamespaces(w.Index).Replace(objects, ""))
	}
}

func namespace(name string, enabled bool) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{config.LabelEnabled: strconv.FormatBool(enabled)}}}
}

// Found by FuzzIndexEvents: two copies of a pod, with our annotation, restored into
// two namespaces at once, took one reservation from each other, and what the first
// had charged stayed for ever.
func TestCopiesInTwoNamespaces(t *testing.T) {
	c := newCluster(t, nil, gpuNode("n", list(nvidia, "8")))
	pod := gpuPod("p", list(nvidia, "1"))
	demand, _ := NewDemand(pod, c.Index.cfg.Resources)
	slow := Request{Pod: pod, Namespace: "team", UID: "u1", FirstUID: "copied"}
	query := &Query{Pod: pod, Demand: &demand, Namespace: slow.Namespace, UID: slow.UID, FirstUID: slow.FirstUID}
	v := c.View(query)
	late := c.decideOn(t.Context(), &v, query)
	if first := c.Decide(t.Context(), Request{Pod: pod, Namespace: "other", UID: "u2", FirstUID: "copied"}); first.UID != "copied" {
		t.Fatalf("the first copy goes by %s", first.UID)
	}
	if c.Scorer.reserve(t.Context(), query, &late) {
		t.Error("the slower copy took the reservation of the other namespace")
	}
	if d := c.Decide(t.Context(), slow); d.UID != "u1" || d.Target() != "n" {
		t.Errorf("decided again: %+v, want its own UID", d)
	}
	if got := c.usedOn("n"); got != 2 {
		t.Errorf("used %d, want 2", got)
	}
	c.clock = c.clock.Add(time.Minute)
	if got := c.usedOn("n"); got != 0 {
		t.Errorf("used %d after all reservations ended", got)
	}
}
