package index_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/watch"
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

// checkSums checks that what is used on each node is what the index says is charged to
// it, that this is never negative, and that back-offs are what follows from the pods.
func (w *world) checkSums() {
	w.t.Helper()
	if err := errors.Join(w.CheckSums(), w.CheckBackoffs()); err != nil {
		w.t.Fatal(err)
	}
}

// checkPools checks that every pool is as if it had just been made.
func (w *world) checkPools() {
	w.t.Helper()
	pools, by, states, latest := w.Pools()
	for _, s := range states {
		if latest[s.Slot].Load() != s {
			w.t.Fatalf("the latest state of %s is not its state", s.Name)
		}
	}
	for kind, p := range pools {
		example, decided := w.examples[kind]
		if !decided {
			w.t.Fatalf("no decision was about pods of the kind %+v", kind)
		}
		made, err := pool.Make(w.t.Context(), kind, example.Pod, example.Demand, by, latest.AppendTo(nil))
		if err != nil {
			w.t.Fatal(err)
		}
		if p.Resting() {
			p.CatchUp(latest.AppendTo(nil))
		}
		fresh, kept := made.View(), p.View()
		if diff := cmp.Diff(describePool(fresh, latest), describePool(kept, latest)); diff != "" {
			w.t.Fatalf("pool %+v differs from a new one (-new +kept):\n%s", kind, diff)
		}
		// Most soft taints and invalid only ever grow.
		if fresh.Matching != kept.Matching || fresh.WithoutHostname != kept.WithoutHostname || fresh.MostSoftTaints > kept.MostSoftTaints {
			w.t.Fatalf("pool %+v counts %+v, a new one %+v", kind, kept, fresh)
		}
	}
}

func describePool(p pool.View, latest pool.Latest) []string {
	var out []string
	p.Entries.Ascend(func(e pool.Entry) bool {
		out = append(out, fmt.Sprintf("%s key %+v used %+v", e.State.Name, e.Key, e.State.Used))
		return true
	})
	p.Scattered.Ascend(func(e pool.Place) bool {
		s := latest.Of(e)
		out = append(out, fmt.Sprintf("%s scattered %+v used %+v", s.Name, e, s.Used))
		return true
	})
	return out
}

// checkRebuilt compares the index with a new one, when nothing is in flight any
// more: where a pod is expected depends on what was free when it came.
func (w *world) checkRebuilt() {
	w.t.Helper()
	w.Clock = w.Clock.Add(inFlightIsOver)
	rebuilt := clustertest.New(w.t, nil)
	rebuilt.Clock = w.Clock
	rebuilt.Unsync() // ages count from creation, as after a restart
	for namespace, enabled := range w.namespaceObjects {
		rebuilt.SetNamespace(namespace, enabled)
	}
	for _, p := range w.podObjects {
		rebuilt.SetPod(p)
	}
	for _, n := range w.nodeObjects {
		rebuilt.SetNode(n)
	}
	if diff := cmp.Diff(describe(rebuilt), describe(w.Cluster)); diff != "" {
		w.t.Fatalf("(-rebuilt +index):\n%s", diff)
	}
	want, got := rebuilt.Size(), w.Size()
	// What happened in the past: refusals, and how long a pod has been waiting.
	got.Backoff, want.Backoff, got.NamespaceBackoff, want.NamespaceBackoff = 0, 0, 0, 0
	got.Pods, want.Pods = 0, 0
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
	if size := w.Size(); size != (index.Size{}) {
		w.t.Errorf("size %+v without any object", size)
	}
	for what, count := range w.Leaks() {
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
	request := scoring.Request{Pod: pod, Namespace: pod.Namespace, UID: w.uid(), FirstUID: w.uid(), DryRun: w.next()%4 == 0}
	w.noteKind(pod)
	before, ctx := w.Size().Reservations, w.t.Context()
	if !request.DryRun { // which is about what was there before
		ctx = w.changesMeanwhile()
	}
	d := w.Decide(ctx, request)
	if request.DryRun && w.Size().Reservations != before {
		w.t.Fatalf("a dry run moved the reservations from %d to %d", before, w.Size().Reservations)
	}
	if d.Reason != steering.ReasonNone {
		return
	}
	weight := int32(steering.MaxWeight)
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
	state := w.State(d.Target())
	asked, _ := demand.Of(pod, w.Config.Resources)
	for _, r := range asked.Requests {
		if used, there := state.Used.Requests.Get(r.Name), state.Allocatable.Get(r.Name); used > there {
			w.t.Fatalf("the target has %d of %s used of %d", used, r.Name, there)
		}
	}
}

// noteKind keeps a pod as an example of its kind.
func (w *world) noteKind(pod *corev1.Pod) {
	stored := w.Version().Stored(pod)
	if asked, reason := demand.Of(stored, w.Config.Resources); reason == steering.ReasonNone {
		w.examples[pool.KindOf(stored, &asked)] = index.Query{Pod: stored, Demand: &asked}
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
		w.must(watch.Pods(w.Index).Replace(objects, ""))
	case 1:
		delete(w.nodeObjects, w.nodeName())
		for _, node := range w.nodeObjects {
			objects = append(objects, node.DeepCopy())
		}
		w.must(watch.Nodes(w.Index).Replace(objects, ""))
	case 2:
		delete(w.namespaceObjects, "team")
		for name, enabled := range w.namespaceObjects {
			objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{config.LabelEnabled: strconv.FormatBool(enabled)}}})
		}
		w.must(watch.Namespaces(w.Index).Replace(objects, ""))
	}
}

// Found by FuzzIndexEvents: two copies of a pod, with our annotation, restored into
// two namespaces at once, took one reservation from each other, and what the first
// had charged stayed for ever.
func TestCopiesInTwoNamespaces(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
	pod := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"))
	asked, _ := demand.Of(pod, c.Config.Resources)
	slow := scoring.Request{Pod: pod, Namespace: "team", UID: "u1", FirstUID: "copied"}
	query := &index.Query{Pod: pod, Demand: &asked, Namespace: slow.Namespace, UID: slow.UID, FirstUID: slow.FirstUID}
	v := c.MustView(t, query)
	if first := c.Decide(t.Context(), scoring.Request{Pod: pod, Namespace: "other", UID: "u2", FirstUID: "copied"}); first.UID != "copied" {
		t.Fatalf("the first copy goes by %s", first.UID)
	}
	late := &index.Reservation{UID: v.UID, Request: query.UID, Namespace: query.Namespace, Listed: []string{"n"}, Demand: &asked}
	if reserved, err := c.Reserve(t.Context(), late); reserved || err != nil {
		t.Error("the slower copy took the reservation of the other namespace")
	}
	if d := c.Decide(t.Context(), slow); d.UID != "u1" || d.Target() != "n" {
		t.Errorf("decided again: %+v, want its own UID", d)
	}
	if got := c.UsedOn("n"); got != 2 {
		t.Errorf("used %d, want 2", got)
	}
	c.Clock = c.Clock.Add(time.Minute)
	if got := c.UsedOn("n"); got != 0 {
		t.Errorf("used %d after all reservations ended", got)
	}
}
