package webhook

import (
	"bytes"
	"context"
	"sync/atomic"
)

// work is what a request holds until nobody works on it any more: memory, a buffer and a
// slot. An answer that is due does not wait for the decision, and what the decision holds
// stays held until it has ended: decisions that take too long, or never end, cannot become
// more than there are slots.
type work struct {
	server *Server
	// users are the goroutines that work on the request.
	users  atomic.Int32
	memory share
	buffer *bytes.Buffer
	// hasSlot: the request has one of the server's slots.
	hasSlot bool
}

// begin says that one more goroutine works on the request; a nil work holds nothing. It is
// called by one that does so already.
func (w *work) begin() {
	if w != nil {
		w.users.Add(1)
	}
}

// end says that one does not any more. The last one gives everything back.
func (w *work) end() {
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
func (w *work) takeSlot(ctx context.Context) bool {
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

// workOf returns what the request of a context holds, nil if it did not come over HTTP.
func workOf(ctx context.Context) *work {
	w, _ := ctx.Value(workKey{}).(*work)
	return w
}
