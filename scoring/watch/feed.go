package watch

import (
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
)

// Feed is what a reflector of client-go writes the objects of one kind to. It is no
// store: all goes into the index, which keeps what it needs. An informer would keep
// every object as well, and pass events through two queues.
type Feed struct {
	transform cache.TransformFunc
	// set and remove return false for what is no such object.
	set, remove func(object any) bool
	// keep drops what is not among the objects.
	keep   func(objects []any)
	seen   func()
	synced atomic.Bool
}

var _ cache.TransformingStore = (*Feed)(nil)

// Add adds an object.
func (f *Feed) Add(object any) error { return f.Update(object) }

// Update adds or updates an object.
func (f *Feed) Update(object any) error {
	f.seen()
	return f.apply(f.set, object)
}

// Delete removes an object.
func (f *Feed) Delete(object any) error {
	f.seen()
	return f.apply(f.remove, object)
}

// Replace makes the objects the only ones: at the start, and after a gap in the watch.
func (f *Feed) Replace(objects []any, _ string) error {
	f.seen()
	for i := range objects {
		objects[i], _ = f.transform(objects[i]) // ours never fail
		if err := f.apply(f.set, objects[i]); err != nil {
			return err
		}
	}
	f.keep(objects) // only now: in between there is too little room rather than too much
	clear(objects)  // the reflector holds the list for longer
	f.synced.Store(true)
	return nil
}

func (f *Feed) apply(do func(any) bool, object any) error {
	kept, _ := f.transform(object)
	if !do(kept) {
		return fmt.Errorf("a %T is not of the kind that is watched", object)
	}
	return nil
}

// Resync does nothing: the index has everything.
func (f *Feed) Resync() error { return nil }

// Transformer returns what the reflector is to make of objects while it collects the
// first ones.
func (f *Feed) Transformer() cache.TransformFunc { return f.transform }

// HasSynced tells whether all objects that there were at the start are in the index.
func (f *Feed) HasSynced() bool { return f.synced.Load() }

// Nodes returns what a reflector of nodes writes to.
func Nodes(ix *index.Index) *Feed {
	return newFeed(ix, reducing(ix.ReduceNode), func(n *nodes.Node) string { return n.Name }, ix.PutNode, ix.DeleteNode, ix.KeepNodes)
}

// Pods returns what a reflector of pods writes to.
func Pods(ix *index.Index) *Feed {
	return newFeed(ix, reducing(ix.ReducePod), func(p *reduced.Pod) types.UID { return p.UID }, ix.PutPod, ix.DeletePod, ix.KeepPods)
}

// Namespaces returns what a reflector of namespaces, or of their metadata, writes to.
func Namespaces(ix *index.Index) *Feed {
	set := func(n *metav1.ObjectMeta) { ix.SetNamespace(n.Name, n.Labels[config.LabelEnabled] == "true") }
	remove := func(name string) { ix.SetNamespace(name, false) }
	return newFeed(ix, transformNamespace, func(n *metav1.ObjectMeta) string { return n.Name }, set, remove, ix.KeepNamespaces)
}

// newFeed returns the feed of objects that become a T, which the index knows by a K.
func newFeed[T any, K comparable](
	ix *index.Index, transform cache.TransformFunc, key func(T) K, set func(T), remove func(K), keep func(sets.Set[K]),
) *Feed {
	return &Feed{
		transform: transform,
		seen:      ix.NoteEvent,
		set:       with(set),
		remove:    with(func(o T) { remove(key(o)) }),
		keep: func(objects []any) {
			keys := make(sets.Set[K], len(objects))
			for i := range objects {
				keys.Insert(key(objects[i].(T))) // set has taken it
			}
			keep(keys)
		},
	}
}

// reducing turns an object of one kind into what the index reads of it. Anything else is
// returned as it is.
func reducing[T, R any](reduce func(T) R) cache.TransformFunc {
	return func(object any) (any, error) {
		if o, ok := object.(T); ok {
			return reduce(o), nil
		}
		return object, nil
	}
}

// transformNamespace makes of a namespace what the index reads.
func transformNamespace(object any) (any, error) {
	if n, ok := object.(metav1.ObjectMetaAccessor); ok {
		m := n.GetObjectMeta()
		return &metav1.ObjectMeta{Name: m.GetName(), ResourceVersion: m.GetResourceVersion(), Labels: m.GetLabels()}, nil
	}
	return object, nil
}

// with is a function for one type, false for others.
func with[T any](do func(T)) func(any) bool {
	return func(object any) bool {
		o, ok := object.(T)
		if ok {
			do(o)
		}
		return ok
	}
}
