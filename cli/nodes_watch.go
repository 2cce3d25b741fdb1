package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/watch"
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
	ix, err := index.New(cfg, nil)
	if err != nil {
		return err
	}
	if clients, err = o.watchClients(); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer stop(nil)
	synced := make(chan struct{})
	following.Go(func() {
		// Nothing is logged between the pictures.
		watch.Follow(klog.NewContext(ctx, logr.Discard()), clients, ix, func() { close(synced) }, func(err error) {
			// A missing permission does not appear by itself. Whatever else happens later
			// may pass.
			if !ix.Synced() || apierrors.IsForbidden(err) {
				stop(err)
			}
		})
	})
	select {
	case <-ctx.Done():
		return endOf(ctx)
	case <-synced:
		return o.redraw(ctx, view, ix, out)
	}
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
func (o *nodesOptions) redraw(ctx context.Context, view *nodesView, ix *index.Index, out io.Writer) error {
	ticker := time.NewTicker(o.interval)
	defer ticker.Stop()
	var last []byte
	for {
		text, err := view.render(newNodesReport(ix, view.order))
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
	case view.screen.Terminal:
		separator = terminal.Clear
	case !first:
		separator = "\n"
	}
	_, err := out.Write(append([]byte(separator), text...))
	return err
}
