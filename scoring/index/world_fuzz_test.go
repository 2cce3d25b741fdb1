package index_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/watch"
)

// world is a cluster whose objects change as bytes say.
type world struct {
	*clustertest.Cluster
	t    *testing.T
	data []byte

	nodeObjects      map[string]*corev1.Node
	podObjects       map[types.UID]*corev1.Pod
	namespaceObjects map[string]bool
	// examples: a pod of each kind that was decided about.
	examples map[pool.Kind]index.Query
}

func newWorld(t *testing.T, data []byte) *world {
	return &world{
		Cluster: clustertest.New(t, nil), t: t, data: data,
		nodeObjects: map[string]*corev1.Node{}, podObjects: map[types.UID]*corev1.Pod{},
		namespaceObjects: map[string]bool{"team": true}, examples: map[pool.Kind]index.Query{},
	}
}

// next is the next byte, 0 when there are no more.
func (w *world) next() int {
	if len(w.data) == 0 {
		return 0
	}
	b := w.data[0]
	w.data = w.data[1:]
	return int(b)
}

func chosen[T any](w *world, values ...T) T { return values[w.next()%len(values)] }

// event is one event or decision.
func (w *world) event() {
	if kind := w.next() % 12; kind < 10 {
		w.change(kind)
	} else {
		w.decideOne()
	}
}

// change is an event of one of ten kinds.
func (w *world) change(kind int) {
	switch kind {
	case 0, 1:
		node := w.newNode()
		w.nodeObjects[node.Name] = node
		w.SetNode(node)
	case 2:
		w.deleteNode(w.nodeName())
	case 3, 4, 5:
		w.setPod()
	case 6:
		w.deletePod()
	case 7:
		w.Clock = w.Clock.Add(chosen(w, 0, 100*time.Millisecond, time.Second, 6*time.Second, 30*time.Second, 2*time.Minute, time.Hour))
	case 8:
		namespace, enabled := chosen(w, "team", "other"), w.next()%2 == 0
		w.namespaceObjects[namespace] = enabled
		w.SetNamespace(namespace, enabled)
	default:
		w.relist()
	}
}

// changesMeanwhile is a context with which a few events come while a pool is made.
func (w *world) changesMeanwhile() context.Context {
	return whileMaking{w.t.Context(), func() {
		for range w.next() % 4 {
			w.change(w.next() % 10)
		}
	}}
}

func (w *world) nodeName() string { return "n" + strconv.Itoa(w.next()%4) }

func (w *world) newNode() *corev1.Node {
	gpus := chosen(w, "8", "8", "4", "1", "0", "64", "9223372036854775807", "-3", "500m")
	node := clustertest.GPUNode(w.nodeName(), clustertest.List(chosen(w, clustertest.NVIDIA, clustertest.NVIDIA, clustertest.NVIDIA, clustertest.AMD, clustertest.MIG), gpus))
	if w.next()%2 == 0 {
		option := chosen(w, clustertest.Cordoned, clustertest.Unready, clustertest.WithCPU("0", "0"), clustertest.WithImage("a:1", 1<<30), clustertest.Labelled("zone", "a"),
			clustertest.Tainted("team", corev1.TaintEffectNoSchedule), clustertest.Tainted("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule),
			clustertest.Tainted("soft", corev1.TaintEffectPreferNoSchedule), func(n *corev1.Node) { delete(n.Status.Allocatable, corev1.ResourcePods) })
		option(node)
	}
	return node
}

// deleteNode removes a node, perhaps one that is not there, directly or as an event.
func (w *world) deleteNode(name string) {
	node := w.nodeObjects[name]
	delete(w.nodeObjects, name)
	if node != nil && w.next()%2 == 0 {
		w.must(watch.Nodes(w.Index).Delete(node))
		return
	}
	w.DeleteNode(name)
}

func (w *world) deletePod() {
	uid := types.UID("p" + strconv.Itoa(w.next()%8))
	pod := w.podObjects[uid]
	delete(w.podObjects, uid)
	if pod != nil && w.next()%2 == 0 {
		w.must(watch.Pods(w.Index).Delete(pod))
		return
	}
	w.DeletePod(uid)
}

// setPod adds a pod, or changes one in a way that the API allows or forbids.
func (w *world) setPod() {
	uid := types.UID("p" + strconv.Itoa(w.next()%8))
	old := w.podObjects[uid]
	pod := w.newPod(string(uid))
	if old != nil {
		pod.Namespace = old.Namespace
		if w.next()%2 == 0 { // only its status
			spec := *old.Spec.DeepCopy()
			spec.NodeName, pod.Spec = pod.Spec.NodeName, spec
		}
	}
	w.podObjects[uid] = pod
	if w.next()%2 == 0 {
		w.SetPod(pod)
		return
	}
	w.must(watch.Pods(w.Index).Update(pod.DeepCopy()))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// newPod is a pod of any kind and in any state.
func (w *world) newPod(uid string) *corev1.Pod {
	quantity := chosen(w, "1", "1", "2", "4", "8", "0", "500m", "-1", "9223372036854775807", "1e30")
	resources := clustertest.List(chosen(w, clustertest.NVIDIA, clustertest.NVIDIA, clustertest.NVIDIA, clustertest.AMD, clustertest.MIG, "cpu"), quantity)
	resources["cpu"], resources["memory"] = clustertest.List("q", chosen(w, "0", "1", "100m", "9223372036854775807"))["q"], clustertest.List("q", chosen(w, "0", "1Gi", "1"))["q"]
	pod := clustertest.GPUPod(uid, resources)
	pod.Namespace = chosen(w, "team", "team", "other")
	pod.CreationTimestamp = metav1.NewTime(w.Clock.Add(chosen(w, 0, -time.Second, -time.Minute, -time.Hour, time.Minute)))
	switch w.next() % 6 {
	case 0:
		pod.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Limits: clustertest.List(clustertest.NVIDIA, "3")}}}
	case 1:
		always := corev1.ContainerRestartPolicyAlways
		pod.Spec.InitContainers = []corev1.Container{{Name: "s", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: clustertest.List(clustertest.NVIDIA, "1")}}}
	}
	if w.next()%2 == 0 {
		option := chosen(w, clustertest.OwnedByDaemonSet, clustertest.Preferring(10, "zone", "a"), clustertest.Tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}))
		option(pod)
	}
	w.steer(pod)
	w.progress(pod)
	return pod
}

// steer makes some pods look as if a decision had been made about them, by us or
// by whoever writes our annotations.
func (w *world) steer(pod *corev1.Pod) {
	for range w.next() % 4 {
		clustertest.SteeredTo(w.nodeName(), w.uid())(pod)
		pod.Annotations[config.AnnotationSteering] = chosen(w, config.SteeringRanked, config.SteeringLate, "")
	}
	switch w.next() % 12 {
	case 0:
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
	case 1:
		pod.Spec.SchedulerName = "other"
	case 2:
		pod.Labels = map[string]string{config.LabelEnabled: "false"}
	}
}

// progress is how far a pod has come.
func (w *world) progress(pod *corev1.Pod) {
	switch w.next() % 8 {
	case 0, 1:
		clustertest.On(w.nodeName())(pod)
	case 2:
		pod.Status.NominatedNodeName = w.nodeName()
	case 3:
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	case 4:
		clustertest.On(w.nodeName())(pod)
		pod.Status.Phase, pod.Status.Reason = chosen(w, corev1.PodFailed, corev1.PodSucceeded), chosen(w, "", "UnexpectedAdmissionError", "TopologyAffinityError", "OutOfcpu")
	case 5:
		clustertest.On(w.nodeName())(pod)
		pod.Status.Phase = chosen(w, corev1.PodRunning, corev1.PodFailed, corev1.PodPending)
		at := w.Clock.Add(chosen(w, 0, -time.Minute, time.Minute))
		status(chosen(w, startError(at), runningSince(at)))(pod)
	}
	if w.next()%6 == 0 {
		clustertest.Terminating(pod)
	}
}
