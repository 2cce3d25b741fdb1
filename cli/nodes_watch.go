package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// follow prints the nodes whenever they change, until the context ends, which is
// no error.
func (o *nodesOptions) follow(ctx context.Context, view *nodesView, out, notes io.Writer) error {
	view.lines = true
	clients, err := o.clients()
	if err != nil {
		return err
	}
	cfg, err := o.configuration.load(ctx, clients, notes)
	if err != nil {
		return err
	}
	index, err := scoring.NewIndex(cfg, nil)
	if err != nil {
		return err
	}
	if clients, err = o.watchClients(); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := feed(ctx, clients, index, stop); err != nil {
		return err
	}
	if !index.Synced() {
		return endOf(ctx)
	}
	return o.redraw(ctx, view, index, out)
}

// endOf is why a context ended: nil when the user wants no more.
func endOf(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// redraw looks every interval and prints what is new. An expected pod that never
// comes stops counting without any event, so waiting for events would not do.
func (o *nodesOptions) redraw(ctx context.Context, view *nodesView, index *scoring.Index, out io.Writer) error {
	ticker := time.NewTicker(o.interval)
	defer ticker.Stop()
	var last []byte
	for {
		text, err := view.render(newNodesReport(index, view.order))
		if err != nil {
			return err
		}
		if !bytes.Equal(text, last) {
			if err := show(view, out, text, last == nil); err != nil {
				return err
			}
			last = text
		}
		select {
		case <-ctx.Done():
			return endOf(ctx)
		case <-ticker.C:
		}
	}
}

// show prints a picture: in place of the last one on a terminal, below it
// elsewhere.
func show(view *nodesView, out io.Writer, text []byte, first bool) error {
	var separator string
	switch {
	case view.output != outputTable:
	case view.screen.terminal:
		separator = codeClear
	case !first:
		separator = "\n"
	}
	_, err := out.Write(append([]byte(separator), text...))
	return err
}

// feed connects an index to the cluster with informers and returns when it has
// seen everything or the context ended. A list that fails before that ends it: a
// missing permission does not appear by itself.
func feed(ctx context.Context, clients kubernetes.Interface, index *scoring.Index, fail context.CancelCauseFunc) error {
	factory := informers.NewSharedInformerFactory(clients, 0)
	core := factory.Core().V1()
	var synced []cache.InformerSynced
	for _, source := range []struct {
		what      string
		informer  cache.SharedIndexInformer
		transform cache.TransformFunc
		handler   cache.ResourceEventHandler
	}{
		{"namespaces", core.Namespaces().Informer(), metadataOnly, index.NamespaceHandler()},
		{"nodes", core.Nodes().Informer(), index.TransformNode, index.NodeHandler()},
		{"pods", core.Pods().Informer(), index.TransformPod, index.PodHandler()},
	} {
		if err := source.informer.SetTransform(source.transform); err != nil {
			return fmt.Errorf("watching %s: %w", source.what, err)
		}
		onError := func(_ context.Context, _ *cache.Reflector, err error) {
			if !index.Synced() {
				fail(fmt.Errorf("watching %s: %w; the command needs list and watch on nodes, pods and namespaces", source.what, err))
			}
		}
		if err := source.informer.SetWatchErrorHandlerWithContext(onError); err != nil {
			return fmt.Errorf("watching %s: %w", source.what, err)
		}
		registration, err := source.informer.AddEventHandler(source.handler)
		if err != nil {
			return fmt.Errorf("watching %s: %w", source.what, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	factory.Start(ctx.Done())
	if cache.WaitForCacheSync(ctx.Done(), synced...) {
		index.SetSynced()
	}
	return nil
}

// metadataOnly makes of a namespace what the index reads.
func metadataOnly(object any) (any, error) {
	if namespace, ok := object.(metav1.ObjectMetaAccessor); ok {
		m := namespace.GetObjectMeta()
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: m.GetName(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(), Labels: m.GetLabels(),
		}}, nil
	}
	return object, nil
}
