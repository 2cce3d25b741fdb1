package server

import (
	"bytes"
	"context"
	"sync/atomic"
)

// Work is what a request holds until nobody works on it any more: memory, a buffer and a
// slot. An answer that is due does not wait for the decision, and what the decision holds
// stays held until it has ended: decisions that take too long, or never end, cannot become
// more than there are slots. All exported methods are safe for parallel use, and a nil Work
// holds nothing.
type Work struct {
	server *Server
	// users are the goroutines that work on the request.
	users  atomic.Int32
	memory share
	buffer *bytes.Buffer
	// hasSlot: the request has one of the server's slots.
	hasSlot bool
}

// Begin says that one more goroutine works on the request. It is called by one that does so
// already, as the handler does until it has answered.
func (w *Work) Begin() {
	if w != nil {
		w.users.Add(1)
	}
}

// End says that one does not any more, and is called once for each Begin. The last one gives
// everything back, the bytes of the request's object included.
func (w *Work) End() {
	if w == nil || w.users.Add(-1) > 0 {
		return
	}
	giveBuffer(w.buffer)
	w.memory.release()
	if w.hasSlot {
		<-w.server.slots
	}
}

// takeSlot waits for a slot. It is false when the context ended first.
func (w *Work) takeSlot(ctx context.Context) bool {
	select {
	case w.server.slots <- struct{}{}:
		w.hasSlot = true
		return true
	case <-ctx.Done():
		return false
	}
}

// workKey is the key of the work in the context of its request.
type workKey struct{}

// WorkOf returns what the request of a context holds, nil if it did not come over HTTP.
func WorkOf(ctx context.Context) *Work {
	w, _ := ctx.Value(workKey{}).(*Work)
	return w
}
