package index_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
)

func TestIndexCountsLikeTheScheduler(t *testing.T) {
	four := clustertest.List(clustertest.NVIDIA, "4")
	tests := map[string]struct {
		pod  *corev1.Pod
		want int64
	}{
		"running":                         {clustertest.GPUPod("p", four, clustertest.On("n")), 4},
		"bound, image pending":            {clustertest.GPUPod("p", four, clustertest.On("n"), clustertest.Phase(corev1.PodPending)), 4},
		"unknown phase":                   {clustertest.GPUPod("p", four, clustertest.On("n"), clustertest.Phase(corev1.PodUnknown)), 4},
		"terminating":                     {clustertest.GPUPod("p", four, clustertest.On("n"), clustertest.Terminating), 4},
		"succeeded":                       {clustertest.GPUPod("p", four, clustertest.On("n"), clustertest.Phase(corev1.PodSucceeded)), 0},
		"failed":                          {clustertest.GPUPod("p", four, clustertest.On("n"), clustertest.Phase(corev1.PodFailed)), 0},
		"succeeded, terminating":          {clustertest.GPUPod("p", four, clustertest.On("n"), clustertest.Phase(corev1.PodSucceeded), clustertest.Terminating), 0},
		"pending":                         {clustertest.GPUPod("p", four), 0},
		"nominated":                       {clustertest.GPUPod("p", four, func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }), 4},
		"on another node":                 {clustertest.GPUPod("p", four, clustertest.On("m")), 0},
		"DaemonSet":                       {clustertest.GPUPod("p", four, clustertest.On("n"), clustertest.OwnedByDaemonSet), 4},
		"target":                          {clustertest.GPUPod("p", four, clustertest.SteeredTo("n", "u")), 4},
		"bound elsewhere than its target": {clustertest.GPUPod("p", four, clustertest.SteeredTo("n", "u"), clustertest.On("m")), 0},
		"forged target, no term of ours": {clustertest.GPUPod("p", four, func(p *corev1.Pod) {
			p.Annotations = map[string]string{config.AnnotationTarget: "n"}
		}), 0},
		"target of a gated pod": {clustertest.GPUPod("p", four, clustertest.SteeredTo("n", "u"), func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}}
		}), 0},
		"target of another scheduler's pod":       {clustertest.GPUPod("p", four, clustertest.SteeredTo("n", "u"), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }), 0},
		"target in a namespace without the label": {clustertest.GPUPod("p", four, clustertest.SteeredTo("n", "u"), func(p *corev1.Pod) { p.Namespace = "other" }), 0},
		"target of an unschedulable pod": {clustertest.GPUPod("p", four, clustertest.SteeredTo("n", "u"), func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		}), 0},
		"old target": {clustertest.GPUPod("p", four, clustertest.SteeredTo("n", "u"), func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(clustertest.Start.Add(-2 * time.Minute))
		}), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			node, other := clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUNode("m", clustertest.List(clustertest.NVIDIA, "8"))
			after := clustertest.New(t, nil, node, other, tc.pod)
			before := clustertest.New(t, nil, tc.pod, other, node)
			if a, b := after.UsedOn("n"), before.UsedOn("n"); a != tc.want || b != tc.want {
				t.Errorf("used %d, and %d when the pod comes before the node, want %d", a, b, tc.want)
			}
			after.DeletePod(tc.pod.UID)
			if got := after.UsedOn("n"); got != 0 {
				t.Errorf("used %d after the pod is gone", got)
			}
		})
	}
}

func TestIndexNodeComesBack(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")), clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "3"), clustertest.On("n")))
	c.DeleteNode("n")
	if got := c.UsedOn("n"); got != -1 {
		t.Fatalf("deleted node still listed with %d used", got)
	}
	c.SetNode(clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4")))
	if got := c.UsedOn("n"); got != 3 {
		t.Errorf("used %d on the recreated node, want 3", got)
	}
}

// Heartbeats and status changes that move no usage leave what decisions read as it
// is.
func TestIndexIgnoresHeartbeats(t *testing.T) {
	node, pod := clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8"), clustertest.WithImage("a:1", 1)), clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "3"), clustertest.On("n"))
	c := clustertest.New(t, nil, node, pod)
	incoming := clustertest.GPUPod("new", clustertest.List(clustertest.NVIDIA, "1"))
	asked, _ := demand.Of(incoming, c.Config.Resources)
	seen := func() any {
		v := c.MustView(t, &index.Query{Pod: incoming, Demand: &asked, Namespace: incoming.Namespace})
		return v.Pool.Entries
	}
	before := seen()
	beat := node.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	beat.Status.Conditions = append(beat.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMemoryPressure})
	c.SetNode(beat)
	status := pod.DeepCopy()
	status.Status.PodIP = "10.0.0.1"
	c.SetPod(status)
	if seen() != before {
		t.Error("the pool changed")
	}
	beat = beat.DeepCopy()
	beat.Status.Allocatable[clustertest.NVIDIA] = resource.MustParse("7")
	c.SetNode(beat)
	if seen() == before {
		t.Error("a change of allocatable was missed")
	}
}

// Whatever the order of events, the index equals one built from the final state.
func TestIndexEqualsRebuild(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		c := clustertest.New(t, nil)
		nodes, pods := map[string]*corev1.Node{}, map[string]*corev1.Pod{}
		for range 150 {
			randomEvent(random, c, nodes, pods)
		}
		rebuilt := clustertest.New(t, nil)
		rebuilt.Clock = c.Clock
		rebuilt.Unsync() // ages count from creation, as after a restart
		for _, p := range pods {
			rebuilt.SetPod(p)
		}
		for _, n := range nodes {
			rebuilt.SetNode(n)
		}
		if diff := cmp.Diff(describe(rebuilt), describe(c)); diff != "" {
			t.Fatalf("seed %d (-rebuilt +index):\n%s", seed, diff)
		}
	}
}

func randomEvent(random *rand.Rand, c *clustertest.Cluster, nodes map[string]*corev1.Node, pods map[string]*corev1.Pod) {
	name := "n" + strconv.Itoa(random.IntN(3))
	uid := "p" + strconv.Itoa(random.IntN(6))
	switch random.IntN(8) {
	case 0:
		nodes[name] = clustertest.GPUNode(name, clustertest.List(clustertest.NVIDIA, strconv.Itoa(8+random.IntN(90))))
		c.SetNode(nodes[name])
	case 1:
		delete(nodes, name)
		c.DeleteNode(name)
	case 2:
		delete(pods, uid)
		c.DeletePod(clustertest.GPUPod(uid, nil).UID)
	case 3:
		c.Clock = c.Clock.Add(time.Duration(random.IntN(20)) * time.Second)
	case 4:
		// The same name with a new UID: a list after a gap.
		if old := pods[uid]; old != nil {
			renewed := old.DeepCopy()
			renewed.UID += types.UID("-" + strconv.FormatInt(random.Int64(), 36))
			renewed.CreationTimestamp = metav1.NewTime(c.Clock)
			delete(pods, uid)
			pods[string(renewed.UID)] = renewed
			c.DeletePod(old.UID)
			c.SetPod(renewed)
		}
	case 5, 6:
		if pods[uid] == nil {
			options := [][]clustertest.PodOption{{}, {clustertest.On(name)}, {clustertest.SteeredTo(name, "u")}, {func(p *corev1.Pod) { p.Status.NominatedNodeName = name }}}
			pods[uid] = clustertest.GPUPod(uid, clustertest.List(clustertest.NVIDIA, strconv.Itoa(random.IntN(4)), "cpu", strconv.Itoa(random.IntN(5))), options[random.IntN(len(options))]...)
			pods[uid].CreationTimestamp = metav1.NewTime(c.Clock)
			c.SetPod(pods[uid])
		}
	default:
		if pods[uid] != nil {
			pods[uid] = pods[uid].DeepCopy()
			options := []clustertest.PodOption{clustertest.On(name), clustertest.Terminating, clustertest.Phase(corev1.PodSucceeded)}
			options[random.IntN(len(options))](pods[uid])
			c.SetPod(pods[uid])
		}
	}
}

// describe lists what decisions depend on.
func describe(c *clustertest.Cluster) map[string]string {
	out := c.Used()
	perGPU := c.PerGPU()
	out["per GPU"] = strconv.FormatInt(perGPU.CPU, 10) + " " + strconv.FormatInt(perGPU.Memory, 10)
	return out
}

// More given back than taken is a bug: it is counted, and the observer is told which node
// it was.
func TestNegativeUsage(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
	var told []string
	c.Observe(index.Observers{Negative: func(node string) { told = append(told, node) }})
	c.SetPod(clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("n")))
	if len(told) != 0 || c.Negatives() != 0 {
		t.Errorf("told of %v, counted %d, before anything is wrong", told, c.Negatives())
	}
	c.TakeAway("n", demand.Load{Requests: demand.Amounts{{Name: clustertest.NVIDIA, Value: 2}}, Pods: 1})
	c.DeleteNode("other") // whoever unlocks next tells
	if !slices.Equal(told, []string{"n"}) || c.Negatives() != 1 {
		t.Errorf("told of %v, counted %d, want [n] and 1", told, c.Negatives())
	}
}

// A dry run, and everything else that only looks, leaves the index as it is: it ends no
// reservation, makes and drops no pool and gives up no room that is held for others.
func TestLookingChangesNothing(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "4")))
	c.SetReplicas(2, 100)
	c.DecideOn(clustertest.GPUPod("held", clustertest.List(clustertest.NVIDIA, "1"))) // and one for the other replica
	c.DecideOn(clustertest.GPUPod("again", clustertest.List(clustertest.NVIDIA, "1")))
	state := func() string {
		return fmt.Sprint(c.Reservations(), c.DescribePools(), c.Held(), c.State("n").Used)
	}
	before := state()
	look := func(gpus string) scoring.Decision {
		pod := clustertest.GPUPod("looks", clustertest.List(clustertest.NVIDIA, gpus))
		c.Explain(t.Context(), scoring.Request{Pod: pod, Namespace: "team"})
		c.Predict(pod)
		return c.Decide(t.Context(), scoring.Request{Pod: pod, Namespace: "team", UID: "looks", DryRun: true})
	}
	// The two reservations leave 2 of 4 GPUs, which are held for the other replica.
	for _, gpus := range []string{"1", "2"} {
		if d := look(gpus); d.Target() != "n" {
			t.Errorf("%s GPUs: %+v", gpus, d)
		}
		if now := state(); now != before {
			t.Errorf("%s GPUs: %s, before %s", gpus, now, before)
		}
	}
	c.Clock = c.Clock.Add(c.Config.InFlight.ReservationTTL.Duration)
	if d := look("4"); d.Target() != "n" {
		t.Errorf("after all reservations are over: %+v", d)
	}
	if now := state(); now != before {
		t.Errorf("after all reservations are over: %s, before %s", now, before)
	}
}
