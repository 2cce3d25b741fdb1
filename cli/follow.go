package cli

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// source is one kind of objects that an index follows.
type source struct {
	what   string
	object runtime.Object
	feed   *scoring.Feed
	*cache.ListWatch
}

func sources(clients kubernetes.Interface, index *scoring.Index) []source {
	core := clients.CoreV1()
	return []source{
		{"namespaces", &corev1.Namespace{}, index.NamespaceFeed(), listWatch(core.Namespaces().List, core.Namespaces().Watch)},
		{"nodes", &corev1.Node{}, index.NodeFeed(), listWatch(core.Nodes().List, core.Nodes().Watch)},
		{"pods", &corev1.Pod{}, index.PodFeed(), listWatch(core.Pods("").List, core.Pods("").Watch)},
	}
}

func listWatch[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	start func(context.Context, metav1.ListOptions) (watch.Interface, error),
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return list(ctx, o)
		},
		WatchFuncWithContext: start,
	}
}

// follow keeps an index in step with the cluster until the context ends, and marks it
// synced, and calls synced, once it has seen everything that exists. onListError, if
// any, learns why a list failed; the reflectors log that and try again.
func follow(ctx context.Context, clients kubernetes.Interface, index *scoring.Index, synced func(), onListError func(error)) {
	var reflectors sync.WaitGroup
	defer reflectors.Wait()
	var all []cache.InformerSynced
	for _, s := range sources(clients, index) {
		if onListError != nil {
			s.ListWatch = tellingErrors(s, onListError)
		}
		lw := cache.ToListWatcherWithWatchListSemantics(s.ListWatch, clients)
		r := cache.NewReflectorWithOptions(lw, s.object, s.feed, cache.ReflectorOptions{Name: s.what})
		reflectors.Go(func() { r.RunWithContext(ctx) })
		all = append(all, s.feed.HasSynced)
	}
	if cache.WaitForCacheSync(ctx.Done(), all...) {
		index.SetSynced()
		synced()
	}
}

// tellingErrors also tells why a list failed. A reflector that cannot stream the first
// objects lists them, so what goes on failing ends up here.
func tellingErrors(s source, tell func(error)) *cache.ListWatch {
	list := s.ListWithContextFunc
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			objects, err := list(ctx, o)
			if err != nil {
				tell(fmt.Errorf("watching %s: %w; the command needs list and watch on nodes, pods and namespaces", s.what, err))
			}
			return objects, err
		},
		WatchFuncWithContext: s.WatchFuncWithContext,
	}
}
