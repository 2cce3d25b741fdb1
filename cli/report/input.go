package report

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/simulate"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

// defaultGPU is the resource name when a file of nodes or pods names none.
const defaultGPU = "nvidia.com/gpu"

// modelLabel is the node label that a model of GPU becomes, as NVIDIA's GPU feature
// discovery sets it.
const modelLabel = "nvidia.com/gpu.product"

// Input is what a report is made from.
type Input struct {
	// State has the nodes and, if some pods have one, the pods.
	State *state.State
	// Source says where it is from.
	Source string
	// Arrivals are the pods of CSV files, if they have times or no node.
	Arrivals []simulate.Arrival
	// Timed: the arrivals have times, and averages over time make sense.
	Timed bool
	// Notes are for the user: what was not used or was rounded.
	Notes []string
}

// LoadCSV reads a file of nodes and one of pods; docs/report.md has their columns.
// The errors name file, line and column.
func LoadCSV(nodesPath, podsPath string, gpus config.Resources, now time.Time) (*Input, error) {
	l := csvLoader{gpus: gpus, nodes: map[string]bool{}, pods: map[string]bool{}}
	unusedOfNodes, err := readTable(nodesPath, [][]string{{"name", "sn"}, {"gpu", "num_gpu"}, {"cpu_milli"}, {"memory_mib"}}, l.node)
	if err != nil {
		return nil, err
	}
	if len(l.nodeList) == 0 {
		return nil, fmt.Errorf("%s: has no nodes; write one line for each after the first", nodesPath)
	}
	unusedOfPods, err := readTable(podsPath, [][]string{{"name"}, {"num_gpu", "gpu"}, {"cpu_milli"}, {"memory_mib"}}, l.pod)
	if err != nil {
		return nil, err
	}
	in := &Input{Source: "files " + nodesPath + " and " + podsPath, Timed: l.timed}
	if l.timed || !l.hasBound {
		in.Arrivals = l.arrivals
	}
	if !l.hasBound {
		l.podList = nil // they do not wait in a cluster: they are yet to come
	}
	in.State = state.New(now, nil, l.nodeList, l.podList)
	in.note(nodesPath, unusedOfNodes)
	in.note(podsPath, unusedOfPods)
	if l.fractions > 0 {
		in.Notes = append(in.Notes, plural(l.fractions, "pod")+" with a part of a GPU (gpu_milli below 1000), each taken to hold a whole one")
	}
	return in, nil
}

func (in *Input) note(path string, unused []string) {
	if len(unused) > 0 {
		in.Notes = append(in.Notes, fmt.Sprintf("%s: columns not used: %s", path, strings.Join(unused, ", ")))
	}
}

// csvLoader makes objects of lines.
type csvLoader struct {
	gpus        config.Resources
	nodes, pods map[string]bool
	nodeList    []corev1.Node
	// podList are all pods, of which hasBound says whether one has a node; arrivals are
	// all that are not of a DaemonSet, without a node.
	podList  []corev1.Pod
	hasBound bool
	arrivals []simulate.Arrival
	// timed: some pod has a time.
	timed     bool
	fractions int
}

// name returns a name that is valid and new.
func (l *csvLoader) name(t *table, seen map[string]bool, prefix string, columns ...string) string {
	name, column := t.text(columns...)
	switch {
	case name == "":
		t.fail(column, "must not be empty")
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		t.fail(column, "%q must be a Kubernetes name: lower-case letters, digits, - and .", name)
	case seen[prefix+name]:
		t.fail(column, "%q is there twice; each line needs a name of its own", name)
	}
	seen[prefix+name] = true
	return name
}

// Limits of a line: what the ranking counts with, and more than there is.
const (
	maxGPUs     = 1 << 20
	maxMilliCPU = 1 << 40
	maxMiB      = 1 << 29
)

// resources adds CPU and memory of a line.
func (l *csvLoader) resources(t *table, list corev1.ResourceList) {
	if milli, ok := t.number(maxMilliCPU, "cpu_milli"); ok {
		list[corev1.ResourceCPU] = *resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	if mib, ok := t.number(maxMiB, "memory_mib"); ok {
		list[corev1.ResourceMemory] = *resource.NewQuantity(mib<<20, resource.BinarySI)
	}
}

func (l *csvLoader) gpuName(t *table) corev1.ResourceName {
	name, column := t.text("gpu_resource")
	if name == "" {
		return defaultGPU
	}
	if !l.gpus.IsGPU(name) {
		t.fail(column, "%q is no GPU resource of the configuration; use one of %s or add it to resources.names of --config", name, strings.Join(l.gpus.Names, ", "))
	}
	return corev1.ResourceName(name)
}

// node reads a line of the file of nodes.
func (l *csvLoader) node(t *table) {
	name := l.name(t, l.nodes, "", "name", "sn")
	list := corev1.ResourceList{}
	l.resources(t, list)
	if gpus, ok := t.number(maxGPUs, "gpu", "num_gpu"); ok && gpus > 0 {
		list[l.gpuName(t)] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	pods, ok := t.number(maxGPUs, "pods")
	if !ok {
		pods = 110 // the kubelet's default
	}
	list[corev1.ResourcePods] = *resource.NewQuantity(pods, resource.DecimalSI)
	labels := map[string]string{corev1.LabelHostname: name}
	model, _ := t.text("model")
	instanceType, _ := t.text("instance_type")
	if instanceType == "" {
		instanceType = model
	}
	l.label(t, labels, modelLabel, "model", model)
	l.label(t, labels, corev1.LabelInstanceTypeStable, "instance_type", instanceType)
	l.nodeList = append(l.nodeList, corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Allocatable: list,
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	})
}

func (l *csvLoader) label(t *table, labels map[string]string, key, column, value string) {
	if value == "" {
		return
	}
	if len(validation.IsValidLabelValue(value)) > 0 {
		t.fail(column, "%q must be letters, digits, -, _ and ., at most 63", value)
	}
	labels[key] = value
}

// pod reads a line of the file of pods.
func (l *csvLoader) pod(t *table) {
	namespace, _ := t.text("namespace")
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	name := l.name(t, l.pods, namespace+"/", "name")
	list := corev1.ResourceList{}
	l.resources(t, list)
	if gpus, ok := t.number(maxGPUs, "num_gpu", "gpu"); ok && gpus > 0 {
		list[l.gpuName(t)] = *resource.NewQuantity(gpus, resource.DecimalSI)
		if milli, ok := t.number(1000, "gpu_milli"); ok && milli > 0 && milli < 1000 {
			l.fractions++
		}
	}
	node, column := t.text("node")
	if node != "" && !l.nodes[node] {
		t.fail(column, "no node %q in the file of nodes; add it there or leave this empty", node)
	}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(namespace + "/" + name)},
		Spec: corev1.PodSpec{
			Containers:    []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}},
			SchedulerName: corev1.DefaultSchedulerName,
			Affinity:      l.models(t),
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	l.addPod(t, pod, node)
}

// models makes required node affinity of a list of GPU models.
func (l *csvLoader) models(t *table) *corev1.Affinity {
	text, _ := t.text("gpu_spec")
	if text == "" {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: modelLabel, Operator: corev1.NodeSelectorOpIn, Values: strings.Split(text, "|"),
			}},
		}}},
	}}
}

// addPod adds a pod with its times and its node, if it has one.
func (l *csvLoader) addPod(t *table, pod corev1.Pod, node string) {
	a := simulate.Arrival{Duration: -1}
	at, timed := t.seconds("arrival", "creation_time")
	a.At = at
	if d, ok := t.seconds("duration"); ok {
		a.Duration, timed = d, true
	}
	started, hasStarted := t.seconds("scheduled_time")
	if ended, ok := t.seconds("deletion_time"); ok && a.Duration < 0 {
		if !hasStarted {
			started = at
		}
		if ended < started {
			t.fail("deletion_time", "%d is before the pod began at %d", ended, started)
		}
		a.Duration = ended - started
	}
	l.timed = l.timed || timed
	created := at
	if !timed {
		created = int64(len(l.pods)) // the order of the file
	}
	pod.CreationTimestamp = metav1.NewTime(time.Unix(created, 0).UTC())
	if kind, column := t.text("owner_kind"); kind == "DaemonSet" {
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "daemonset", UID: "daemonset", Controller: &yes}}
		if node == "" {
			t.fail(column, "a pod of a DaemonSet needs a node; fill in the column node")
		}
	}
	waiting := pod
	a.Pod = &waiting
	if len(pod.OwnerReferences) == 0 {
		l.arrivals = append(l.arrivals, a)
	}
	pod.Spec.NodeName = node
	l.hasBound = l.hasBound || node != ""
	l.podList = append(l.podList, pod)
}
