package index_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
)

// FuzzOutcomeOrder makes pods of bytes that start on two nodes or are refused there. A
// replica that watches them come and go, one that was started afterwards, and one that
// hears of them in any order must say the same of the nodes.
func FuzzOutcomeOrder(f *testing.F) {
	random := rand.New(rand.NewPCG(15, 3))
	for range 50 {
		f.Add(randomEvents(random))
	}
	f.Fuzz(checkOutcomeOrder)
}

// The same for some hundred sequences, always the same ones, in every run of the tests.
func TestOutcomeOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 15))
	held := 0
	for range 300 {
		held += outcomeOrder(t, randomEvents(random))
		if t.Failed() {
			return
		}
	}
	if held < 100 {
		t.Errorf("%d back-offs in all: the sequences show too little", held)
	}
}

func checkOutcomeOrder(t *testing.T, data []byte) { outcomeOrder(t, data) }

// outcomeOrder returns how many back-offs there are in the end.
func outcomeOrder(t *testing.T, data []byte) int {
	t.Helper()
	w := &world{t: t, data: data}
	var pods []*corev1.Pod
	clock := clustertest.Start
	// No more refusals of a node than are kept one by one: beyond that the order may matter.
	for len(w.data) > 3 && len(pods) < 60 {
		clock = clock.Add(chosen(w, 0, time.Second, 10*time.Second, 40*time.Second, 3*time.Minute))
		pods = append(pods, w.tried(len(pods), clock))
	}
	watching, started, shuffled := newHoles(t), newHoles(t), newHoles(t)
	started.Unsync()
	shuffled.Unsync()
	for _, pod := range pods {
		watching.Clock = pod.CreationTimestamp.Time
		setBound(watching, pod)
		if w.next()%2 == 0 {
			watching.SetPod(pod)
		}
		if w.next()%2 == 0 {
			watching.DeletePod(pod.UID)
		}
	}
	for _, c := range []*clustertest.Cluster{watching, started, shuffled} {
		c.Clock = clock
	}
	for _, pod := range pods {
		started.SetPod(pod)
	}
	started.SetSynced()
	rand.New(rand.NewPCG(uint64(len(data)), uint64(w.next()))).Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	for _, pod := range pods {
		shuffled.SetPod(pod)
	}
	shuffled.SetSynced()
	want := watching.Backoffs()
	for name, c := range map[string]*clustertest.Cluster{"started later": started, "in another order": shuffled} {
		if diff := cmp.Diff(want, c.Backoffs()); diff != "" {
			t.Errorf("%s (-watching +%s):\n%s", name, name, diff)
		}
		if err := c.CheckBackoffs(); err != nil {
			t.Error(name, err)
		}
	}
	return len(want)
}

func newHoles(t *testing.T) *clustertest.Cluster {
	both := clustertest.List(clustertest.NVIDIA, "8", clustertest.MIG, "8")
	return clustertest.New(t, nil, clustertest.GPUNode("n0", both), clustertest.GPUNode("n1", both))
}

// tried is a pod that started on a node or did not.
func (w *world) tried(i int, at time.Time) *corev1.Pod {
	requests := clustertest.List(chosen(w, clustertest.NVIDIA, clustertest.NVIDIA, clustertest.MIG), chosen(w, "1", "2"))
	pod := clustertest.GPUPod(fmt.Sprint("p", i), requests, clustertest.On(chosen(w, "n0", "n1")), created(at), of(chosen(w, "team", "team", "other")))
	pod.UID = types.UID(fmt.Sprint("uid", i))
	pod.Annotations = map[string]string{config.AnnotationSteering: config.SteeringRanked}
	switch w.next() % 12 {
	case 0:
		status(runningSince(at))(pod)
	case 1:
		clustertest.Phase(corev1.PodSucceeded)(pod)
	case 2, 3:
		refused("TopologyAffinityError", at)(pod)
	case 4, 5:
		clustertest.Phase(corev1.PodFailed)(pod)
		status(startError(at))(pod)
	default:
		refused("UnexpectedAdmissionError", at)(pod)
	}
	return pod
}
