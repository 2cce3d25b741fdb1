package nodes

// Recent is a map of what was asked for lately, bounded in bytes. It has two generations:
// when the entries of the younger one take as much as they may, it becomes the older one,
// and what nobody asked for since the last such change is forgotten. So what is in use
// stays, and what is not goes with what comes.
type Recent[V any] struct {
	// maxBytes is for one generation.
	maxBytes   int
	young, old map[string]V
	bytes      int
}

// NewRecent returns an empty map whose entries, of both generations, take at most twice as
// much as maxBytes.
func NewRecent[V any](maxBytes int) *Recent[V] { return &Recent[V]{maxBytes: maxBytes} }

// Get returns what is held for a key. cost is what Put was told.
func (r *Recent[V]) Get(key string, cost int) (value V, held bool) {
	if value, held = r.young[key]; held {
		return value, true
	}
	if value, held = r.old[key]; held {
		delete(r.old, key)
		r.Put(key, value, cost)
	}
	return value, held
}

// Put holds a value, which takes cost bytes with its key. The key must not be held.
func (r *Recent[V]) Put(key string, value V, cost int) {
	if r.bytes+cost > r.maxBytes {
		r.old, r.young, r.bytes = r.young, nil, 0
	}
	if cost > r.maxBytes {
		return
	}
	if r.young == nil {
		r.young = map[string]V{}
	}
	r.young[key] = value
	r.bytes += cost
}
