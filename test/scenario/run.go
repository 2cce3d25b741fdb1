package scenario

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// attempts is how often a scenario is played when calls of the webhook fail: on a
// busy machine one can take longer than its timeout of a second. Such a pod is
// created all the same, but what it does says nothing about steering.
const attempts = 3

// Run plays a scenario in a new namespace, on new nodes, and returns where the
// pods went. enabled says whether the namespace is opted in. then, if not nil, is
// called before pods and nodes are removed.
func Run(ctx context.Context, c *Cluster, s Scenario, enabled bool, then func(*Stage) error) (Placement, error) {
	for attempt := 1; ; attempt++ {
		before, err := c.Installed.FailOpens(ctx)
		if err != nil {
			return Placement{}, err
		}
		failed := false
		p, err := run(ctx, c, s, enabled, func(st *Stage) error {
			after, err := c.Installed.FailOpens(ctx)
			if failed = after > before && attempt < attempts; err != nil || failed || then == nil {
				return err
			}
			return then(st)
		})
		if err != nil || !failed {
			return p, err
		}
	}
}

// run is one attempt.
func run(ctx context.Context, c *Cluster, s Scenario, enabled bool, then func(*Stage) error) (p Placement, err error) {
	prefix, labels := s.Name+"-without", map[string]string{}
	if enabled {
		prefix, labels[config.LabelEnabled] = s.Name+"-with", "true"
	}
	name, err := c.GenerateNamespace(ctx, prefix, labels)
	if err != nil {
		return Placement{}, err
	}
	st := &Stage{stage{cluster: c, namespace: name, schedulerName: s.SchedulerName, nodes: make([]*corev1.Node, s.Nodes)}}
	for i := range st.nodes {
		st.nodes[i] = controlplane.Node(fmt.Sprintf("%s-%02d", s.Name, i), nodeAllocatable(s.GPUs))
	}
	defer func() { err = errors.Join(err, st.clear(context.WithoutCancel(ctx))) }()
	if err := c.CreateNodes(ctx, st.nodes...); err != nil {
		return Placement{}, err
	}
	if err := c.WaitIndex(ctx); err != nil {
		return Placement{}, err
	}
	if err := s.play(ctx, &st.stage); err != nil {
		return Placement{}, err
	}
	if p, err = st.Placement(ctx); err != nil {
		return p, err
	}
	return p, then(st)
}

func nodeAllocatable(gpus int) map[string]string {
	return map[string]string{
		"cpu":       fmt.Sprint(gpus * 12),
		"memory":    fmt.Sprintf("%dGi", gpus*144),
		string(GPU): fmt.Sprint(gpus),
	}
}

func quantities(values map[corev1.ResourceName]int64) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, value := range values {
		list[name] = *resource.NewQuantity(value, resource.DecimalSI)
	}
	return list
}

// Stage is a scenario whose pods are placed.
type Stage struct{ stage }

// Placement reads where the pods are.
func (s *Stage) Placement(ctx context.Context) (Placement, error) {
	return readPlacement(ctx, s.cluster.Client(), s.namespace)
}

// Empty deletes all pods of one node and waits until they are gone.
func (s *Stage) Empty(ctx context.Context, node string) error {
	return s.deletePods(ctx, func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
}

// stage is what a scenario plays on.
type stage struct {
	cluster   *Cluster
	namespace string
	// schedulerName is that of all pods.
	schedulerName string
	nodes         []*corev1.Node
	pods          int
}

// place puts a pod on a node, past the scheduler, as existing load.
func (s *stage) place(ctx context.Context, node, gpus int) error {
	pod := s.pod(gpus)
	pod.Spec.NodeName = s.nodes[node].Name
	if err := s.cluster.Client().Create(ctx, pod); err != nil {
		return fmt.Errorf("creating pod: %w", err)
	}
	return s.cluster.WaitIndex(ctx)
}

// sequence creates pods one after another, each when the last one is placed.
func (s *stage) sequence(ctx context.Context, gpus ...int) error {
	for _, n := range gpus {
		if err := s.one(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// one creates a pod and waits until the scheduler has decided about it.
func (s *stage) one(ctx context.Context, gpus int) error {
	pod := s.pod(gpus)
	if err := s.cluster.Client().Create(ctx, pod); err != nil {
		return fmt.Errorf("creating pod: %w", err)
	}
	if err := s.waitDecided(ctx, s.pods); err != nil {
		return err
	}
	return s.cluster.WaitIndex(ctx)
}

// replicaSet creates a ReplicaSet and waits until the scheduler has decided about
// all its pods.
func (s *stage) replicaSet(ctx context.Context, replicas int32, gpus int) error {
	labels := map[string]string{"app": "burst"}
	template := s.pod(gpus)
	s.pods += int(replicas) - 1
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "burst", Namespace: s.namespace},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec},
		},
	}
	if err := s.cluster.Client().Create(ctx, set); err != nil {
		return fmt.Errorf("creating ReplicaSet: %w", err)
	}
	return s.waitDecided(ctx, s.pods)
}

// pod returns a new pod with that many GPUs.
func (s *stage) pod(gpus int) *corev1.Pod {
	s.pods++
	resources := podResources(gpus)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", s.pods), Namespace: s.namespace},
		Spec: corev1.PodSpec{SchedulerName: s.schedulerName, Containers: []corev1.Container{{
			Name:      "train",
			Image:     "train:1",
			Resources: corev1.ResourceRequirements{Requests: resources, Limits: resources},
		}}},
	}
}

// waitDecided waits until there are that many pods and the scheduler has bound
// each or called it unschedulable.
func (s *stage) waitDecided(ctx context.Context, count int) error {
	decided := 0
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := s.cluster.Client().List(ctx, &pods, client.InNamespace(s.namespace)); err != nil {
			return false, err
		}
		decided = 0
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName != "" || isUnschedulable(&pods.Items[i]) {
				decided++
			}
		}
		return decided == count, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %d pods to be placed, %d are: %w", count, decided, err)
	}
	return nil
}

func isUnschedulable(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

// clear removes what the scenario created.
func (s *stage) clear(ctx context.Context) error {
	set := &appsv1.ReplicaSet{}
	orphan := client.PropagationPolicy(metav1.DeletePropagationOrphan)
	if err := s.cluster.Client().DeleteAllOf(ctx, set, client.InNamespace(s.namespace), orphan); err != nil {
		return fmt.Errorf("deleting ReplicaSets: %w", err)
	}
	if err := s.waitNoReplicaSets(ctx); err != nil {
		return err
	}
	if err := s.deletePods(ctx, func(*corev1.Pod) bool { return true }); err != nil {
		return err
	}
	for _, node := range s.nodes {
		if err := client.IgnoreNotFound(s.cluster.Client().Delete(ctx, node)); err != nil {
			return fmt.Errorf("deleting node %s: %w", node.Name, err)
		}
	}
	return s.cluster.WaitIndex(ctx)
}

// waitNoReplicaSets waits until the garbage collector has let go of the pods.
func (s *stage) waitNoReplicaSets(ctx context.Context) error {
	return poll(ctx, func(ctx context.Context) (bool, error) {
		var sets appsv1.ReplicaSetList
		err := s.cluster.Client().List(ctx, &sets, client.InNamespace(s.namespace))
		return len(sets.Items) == 0, err
	})
}

// deletePods deletes the pods that match, at once, and waits until they are gone.
func (s *stage) deletePods(ctx context.Context, match func(*corev1.Pod) bool) error {
	return poll(ctx, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := s.cluster.Client().List(ctx, &pods, client.InNamespace(s.namespace)); err != nil {
			return false, err
		}
		gone := true
		for i := range pods.Items {
			if !match(&pods.Items[i]) {
				continue
			}
			gone = false
			err := s.cluster.Client().Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0))
			if client.IgnoreNotFound(err) != nil {
				return false, err
			}
		}
		return gone, nil
	})
}
