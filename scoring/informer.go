package scoring

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// NodeHandler feeds the index with nodes.
func (ix *Index) NodeHandler() cache.ResourceEventHandler {
	return handler(ix.noteEvent, ix.SetNode, func(n *corev1.Node) { ix.DeleteNode(n.Name) })
}

// PodHandler feeds the index with pods.
func (ix *Index) PodHandler() cache.ResourceEventHandler {
	h := handler(ix.noteEvent, ix.SetPod, func(p *corev1.Pod) { ix.DeletePod(p.UID) })
	add, update := h.AddFunc, h.UpdateFunc
	h.AddFunc = func(obj any) {
		if p, ok := obj.(*corev1.Pod); ok {
			ix.noteNew(p)
		}
		add(obj)
	}
	h.UpdateFunc = func(old, obj any) {
		// After a gap in the watch, a pod that was deleted and created again
		// under its name arrives as an update.
		before, ok := old.(*corev1.Pod)
		if after, is := obj.(*corev1.Pod); ok && is && before.UID != after.UID {
			ix.DeletePod(before.UID)
		}
		update(old, obj)
	}
	return h
}

// NamespaceHandler feeds the index with the metadata of namespaces.
func (ix *Index) NamespaceHandler() cache.ResourceEventHandler {
	return handler(ix.noteEvent, func(n *metav1.PartialObjectMetadata) {
		ix.SetNamespace(n.Name, n.Labels[config.LabelEnabled] == "true")
	}, func(n *metav1.PartialObjectMetadata) {
		ix.SetNamespace(n.Name, false)
	})
}

// noteEvent notes that the watches deliver something.
func (ix *Index) noteEvent() { ix.lastEvent.Store(ix.now().UnixNano()) }

// LastEvent returns when the latest event of a node, pod or namespace came, zero
// before the first. Kubelets update their nodes every 5 minutes at least, so a
// cluster with nodes is never quiet for longer unless a watch is.
func (ix *Index) LastEvent() time.Time {
	if at := ix.lastEvent.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// handler translates informer events; seen is called for each. A delete that the
// watch missed arrives as the last known state.
func handler[T any](seen func(), set, remove func(T)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			seen()
			if o, ok := obj.(T); ok {
				set(o)
			}
		},
		UpdateFunc: func(_, obj any) {
			seen()
			if o, ok := obj.(T); ok {
				set(o)
			}
		},
		DeleteFunc: func(obj any) {
			seen()
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if o, ok := obj.(T); ok {
				remove(o)
			}
		},
	}
}

// StripNode removes from a Node, before it is stored, what the index does not
// read. Edit it together with newNode.
func StripNode(obj any) (any, error) {
	if n, ok := obj.(*corev1.Node); ok {
		n.ManagedFields, n.Annotations, n.OwnerReferences = nil, nil, nil
		n.Spec = corev1.NodeSpec{Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable}
		n.Status = corev1.NodeStatus{
			Allocatable: n.Status.Allocatable,
			Conditions:  n.Status.Conditions,
			Images:      n.Status.Images,
		}
	}
	return obj, nil
}

// StripPod removes from a Pod, before it is stored, what the index does not
// read; above all everything that may hold a secret. Edit it together with
// ownershipOf, demandOf and noteRefusal.
func StripPod(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	p.ManagedFields, p.Labels = nil, only(p.Labels, config.LabelEnabled)
	p.Annotations = only(p.Annotations, config.AnnotationSteering, config.AnnotationTarget, config.AnnotationAdmission)
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			*c = corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		}
	}
	p.Spec = corev1.PodSpec{
		InitContainers:  p.Spec.InitContainers,
		Containers:      p.Spec.Containers,
		Overhead:        p.Spec.Overhead,
		Resources:       p.Spec.Resources,
		NodeName:        p.Spec.NodeName,
		SchedulerName:   p.Spec.SchedulerName,
		SchedulingGates: p.Spec.SchedulingGates,
		Affinity:        ourAffinity(p.Spec.Affinity),
	}
	p.Status = corev1.PodStatus{
		Phase:                 p.Status.Phase,
		Conditions:            p.Status.Conditions,
		Reason:                p.Status.Reason,
		NominatedNodeName:     p.Status.NominatedNodeName,
		ContainerStatuses:     stripStatuses(p.Status.ContainerStatuses),
		InitContainerStatuses: stripStatuses(p.Status.InitContainerStatuses),
		Resources:             p.Status.Resources,
	}
	return obj, nil
}

// only returns the entries of the given keys.
func only(all map[string]string, keys ...string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if v, ok := all[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = v
		}
	}
	return kept
}

func ourAffinity(a *corev1.Affinity) *corev1.Affinity {
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
	}}
}

// stripStatuses keeps what in-place resizing reports.
func stripStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	for i := range statuses {
		s := &statuses[i]
		*s = corev1.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources}
	}
	return statuses
}
