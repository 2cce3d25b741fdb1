package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
)

// source is one kind of objects that an index follows.
type source struct {
	what   string
	object runtime.Object
	feed   *Feed
	*cache.ListWatch
}

func sources(clients kubernetes.Interface, ix *index.Index) []source {
	core := clients.CoreV1()
	return []source{
		{"namespaces", &corev1.Namespace{}, Namespaces(ix), listWatch(core.Namespaces().List, core.Namespaces().Watch)},
		{"nodes", &corev1.Node{}, Nodes(ix), listWatch(core.Nodes().List, core.Nodes().Watch)},
		{"pods", &corev1.Pod{}, Pods(ix), listWatch(core.Pods("").List, core.Pods("").Watch)},
	}
}

func listWatch[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	start func(context.Context, metav1.ListOptions) (apiwatch.Interface, error),
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return list(ctx, o)
		},
		WatchFuncWithContext: start,
	}
}

// Follow keeps an index in step with the cluster until the context ends, and marks it
// synced, and calls synced, once it has seen everything that exists. onError, if any,
// learns why a list or watch failed unless that is nothing unusual; the reflectors try
// again.
func Follow(ctx context.Context, clients kubernetes.Interface, ix *index.Index, synced func(), onError func(error)) {
	var reflectors sync.WaitGroup
	defer waitShortly(&reflectors)
	var all []cache.InformerSynced
	for _, s := range sources(clients, ix) {
		if onError != nil {
			s.ListWatch = tellingErrors(s, onError)
		}
		lw := cache.ToListWatcherWithWatchListSemantics(s.ListWatch, clients)
		r := cache.NewReflectorWithOptions(lw, s.object, s.feed, cache.ReflectorOptions{Name: s.what})
		reflectors.Go(func() { r.RunWithContext(ctx) })
		all = append(all, s.feed.HasSynced)
	}
	if cache.WaitForCacheSync(ctx.Done(), all...) {
		ix.SetSynced()
		synced()
	}
	<-ctx.Done()
}

// reflectorsEnd is how long reflectors get to end. They need microseconds, unless one
// is sleeping after a refused connection: that lasts up to a minute, context or not.
const reflectorsEnd = time.Second

func waitShortly(reflectors *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() {
		reflectors.Wait()
		close(ended)
	}()
	timeout := time.NewTimer(reflectorsEnd)
	defer timeout.Stop()
	select {
	case <-ended:
	case <-timeout.C:
	}
}

// tellingErrors also tells why a list or watch failed.
func tellingErrors(s source, tell func(error)) *cache.ListWatch {
	list, start := s.ListWithContextFunc, s.WatchFuncWithContext
	failed := func(err error) {
		if err != nil && !isUsual(err) {
			tell(fmt.Errorf("watching %s: %w; the command needs list and watch on nodes, pods and namespaces", s.what, err))
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			objects, err := list(ctx, o)
			failed(err)
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			w, err := start(ctx, o)
			failed(err)
			return w, err
		},
	}
}

// isUsual tells whether a reflector goes on otherwise or a moment later: an old resource
// version, an API server that is busy, or one that cannot send the first objects as
// events.
func isUsual(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}
