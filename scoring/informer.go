package scoring

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// NodeHandler feeds the index with nodes, as they are or as TransformNode makes them.
func (ix *Index) NodeHandler() cache.ResourceEventHandler {
	set := func(n *storedNode) { ix.setNode(n.node) }
	return transformed(ix.TransformNode, handler(ix.noteEvent, set, func(n *storedNode) { ix.DeleteNode(n.name) }))
}

// PodHandler feeds the index with pods, as they are or as TransformPod makes them.
func (ix *Index) PodHandler() cache.ResourceEventHandler {
	h := handler(ix.noteEvent, ix.storePod, func(p *storedPod) { ix.DeletePod(p.uid) })
	add, update := h.AddFunc, h.UpdateFunc
	h.AddFunc = func(obj any) {
		if p, ok := obj.(*storedPod); ok {
			ix.noteNew(p)
		}
		add(obj)
	}
	h.UpdateFunc = func(old, obj any) {
		// After a gap in the watch, a pod that was deleted and created again
		// under its name arrives as an update.
		before, ok := old.(*storedPod)
		if after, is := obj.(*storedPod); ok && is && before.uid != after.uid {
			ix.DeletePod(before.uid)
		}
		update(old, obj)
	}
	return transformed(ix.TransformPod, h)
}

// transformed is a handler that gets all objects transformed, whether or not the
// informer does it too.
func transformed(transform cache.TransformFunc, h cache.ResourceEventHandlerFuncs) cache.ResourceEventHandler {
	must := func(obj any) any {
		if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		out, _ := transform(obj) // ours never fail
		return out
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { h.AddFunc(must(obj)) },
		UpdateFunc: func(old, obj any) { h.UpdateFunc(must(old), must(obj)) },
		DeleteFunc: func(obj any) { h.DeleteFunc(must(obj)) },
	}
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
