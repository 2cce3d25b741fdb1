package state_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

// richNode and richPod have every field that anything of a node or pod is read from, and
// some that are not.
const (
	richNode = `{"metadata":{"name":"n","labels":{"kubernetes.io/hostname":"n","pool":"a","topology.kubernetes.io/zone":"z"},"annotations":{"a":"b"}},
"spec":{"unschedulable":false,"providerID":"p","taints":[{"key":"spot","effect":"PreferNoSchedule"},{"key":"gpu","effect":"NoSchedule"}]},
"status":{"allocatable":{"cpu":"32","memory":"128Gi","pods":"20","nvidia.com/gpu":"8","example.com/nic":"2"},
"conditions":[{"type":"Ready","status":"True"},{"type":"MemoryPressure","status":"False"}],
"images":[{"names":["registry/train:1"],"sizeBytes":900000000},{"names":["registry/data:1"],"sizeBytes":700000000}],"nodeInfo":{"osImage":"x"}}}`
	richPod = `{"metadata":{"name":"p","namespace":"team","uid":"u","labels":{"app":"x","gpu-binpacker.io/enabled":"true"},"creationTimestamp":"2026-01-02T03:03:40Z",
"annotations":{"gpu-binpacker.io/target":"n0","gpu-binpacker.io/admission":"adm","gpu-binpacker.io/steering":"ranked","other":"x"},
"ownerReferences":[{"kind":"ReplicaSet","name":"r","apiVersion":"apps/v1","uid":"r"}]},
"spec":{"nodeName":"n1","schedulerName":"default-scheduler","overhead":{"cpu":"100m"},"nodeSelector":{"pool":"a"},
"resources":{"requests":{"cpu":"6","memory":"20Gi"}},
"tolerations":[{"key":"gpu","operator":"Exists"},{"key":"spot","operator":"Exists"}],
"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
{"weight":90,"preference":{"matchFields":[{"key":"metadata.name","operator":"In","values":["n0"]}]}},
{"weight":20,"preference":{"matchExpressions":[{"key":"pool","operator":"In","values":["a"]}]}}]}},
"volumes":[{"name":"v","image":{"reference":"registry/data:1"}},{"name":"w","emptyDir":{}}],
"initContainers":[{"name":"i","image":"registry/data:1","restartPolicy":"Always","resources":{"requests":{"cpu":"1","memory":"1Gi"}}}],
"containers":[{"name":"c","image":"registry/train:1","command":["x"],"env":[{"name":"a","value":"b"}],
"resources":{"requests":{"cpu":"4","memory":"16Gi","nvidia.com/gpu":"1"},"limits":{"nvidia.com/gpu":"1"}}}]},
"status":{"phase":"Running","nominatedNodeName":"n2","reason":"x","startTime":"2026-01-02T03:03:50Z","allocatedResources":{"cpu":"9","memory":"24Gi"},
"resources":{"requests":{"cpu":"7","memory":"22Gi"}},
"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"},{"type":"PodResizePending","status":"True","reason":"Infeasible"}],
"containerStatuses":[{"name":"c","restartCount":1,
"state":{"terminated":{"reason":"StartError","exitCode":128,"message":"x","startedAt":"1970-01-01T00:00:00Z","finishedAt":"2026-01-02T03:03:58Z"}},
"lastState":{"terminated":{"reason":"StartError","exitCode":128,"message":"x","startedAt":"1970-01-01T00:00:00Z","finishedAt":"2026-01-02T03:03:52Z"}},"allocatedResources":{"cpu":"5","memory":"18Gi","nvidia.com/gpu":"1"},"resources":{"requests":{"cpu":"3","memory":"12Gi","nvidia.com/gpu":"1"}}}],
"initContainerStatuses":[{"name":"i","allocatedResources":{"cpu":"2","memory":"2Gi"}}]}}`
)

// A decision from a saved state is the decision from the objects themselves, whatever of
// all that is read of them is there.
func TestStateDecidesLikeTheCluster(t *testing.T) {
	random, reasons, backoffs := rand.New(rand.NewPCG(1, 2)), map[string]int{}, 0
	for range 400 {
		cluster := newObjects(t, random)
		saved := state.New(start, []string{"team"}, cluster.nodes, cluster.pods)
		text, err := json.Marshal(saved)
		if err != nil {
			t.Fatal(err)
		}
		read := &state.State{}
		if err := json.Unmarshal(text, read); err != nil {
			t.Fatal(err)
		}
		fromState, err := read.Index(impatient())
		if err != nil {
			t.Fatal(err)
		}
		// The incoming pod is part of the file, too, and is read from there.
		stored := read.Pods[len(read.Pods)-1]
		if stored.Name != incoming {
			t.Fatalf("the last pod is %s", stored.Name)
		}
		want := explain(t, cluster.index(t), &cluster.pods[len(cluster.pods)-1])
		got := explain(t, fromState, &stored)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("explanation (-cluster +state):\n%s", diff)
		}
		reasons[string(want.Decision.Reason)]++
		if slices.ContainsFunc(want.LeftOut, func(n scoring.LeftOutNode) bool { return n.Backoff != nil }) {
			backoffs++
		}
	}
	if reasons[""] < 50 || len(reasons) < 3 || backoffs < 5 {
		t.Errorf("decisions %v, and %d with a node in back-off: too few kinds", reasons, backoffs)
	}
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// incoming is the name of the pod that is decided about, the last in order.
const incoming = "zz"

// objects are those of a cluster.
type objects struct {
	nodes []corev1.Node
	pods  []corev1.Pod
}

// newObjects returns nodes and pods from which parts are missing at random.
func newObjects(t *testing.T, random *rand.Rand) objects {
	t.Helper()
	var o objects
	for i := range 4 {
		o.nodes = append(o.nodes, without[corev1.Node](t, random, richNode))
		o.nodes[i].Name = fmt.Sprint("n", i)
		if random.IntN(4) > 0 { // most nodes must be usable
			o.nodes[i].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		}
	}
	for i := range 7 {
		pod := without[corev1.Pod](t, random, richPod)
		pod.Name, pod.Namespace, pod.UID = fmt.Sprint("p", i), "team", types.UID(fmt.Sprint("u", i))
		if random.IntN(3) == 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		if random.IntN(3) == 0 {
			pod.Status.Reason = "UnexpectedAdmissionError"
		}
		o.pods = append(o.pods, pod)
	}
	last := &o.pods[len(o.pods)-1]
	last.Name, last.Spec.NodeName, last.Status = incoming, "", corev1.PodStatus{}
	return o
}

// without returns an object of a text from which members are missing, one in five.
func without[T any](t *testing.T, random *rand.Rand, text string) (object T) {
	t.Helper()
	var tree any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	thin(random, tree)
	// Twice, since an object from the API server has no empty lists and maps.
	for from := tree; ; from = object {
		thinned, err := json.Marshal(from)
		again := new(T)
		if err == nil {
			err = json.Unmarshal(thinned, again)
		}
		if err != nil {
			t.Fatal(err)
		}
		object = *again
		if _, typed := from.(T); typed {
			return object
		}
	}
}

func thin(random *rand.Rand, tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for key, value := range tree {
			if random.IntN(12) == 0 {
				delete(tree, key)
			} else {
				thin(random, value)
			}
		}
	case []any:
		for _, value := range tree {
			thin(random, value)
		}
	}
}

// impatient is a configuration by which the first refused pod begins a back-off.
func impatient() config.Configuration {
	cfg := config.Default()
	cfg.Nodes.Backoff.Failures = 1
	return cfg
}

// index returns the index of the objects themselves.
func (o objects) index(t *testing.T) *index.Index {
	t.Helper()
	ix, err := index.New(impatient(), func() time.Time { return start })
	if err != nil {
		t.Fatal(err)
	}
	ix.SetNamespace("team", true)
	for i := range o.nodes {
		ix.SetNode(&o.nodes[i])
	}
	for i := range o.pods {
		ix.SetPod(&o.pods[i])
	}
	ix.SetSynced()
	return ix
}

func explain(t *testing.T, ix *index.Index, pod *corev1.Pod) scoring.Explanation {
	t.Helper()
	return scoring.NewScorer(config.Default(), ix).Explain(t.Context(), scoring.Request{Pod: pod, Namespace: "team", UID: "new"})
}
