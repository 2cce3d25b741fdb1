package fakeapi

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// historyLength is how many changes of a resource a watch can go back at least.
// kube-apiserver keeps 100 to 102,400 of them (watch_cache.go), those of 75 seconds;
// this is 10 seconds of what the benchmarks write at most.
const historyLength = 5000

// object is one object, encoded with its resource version.
type object struct {
	version uint64
	data    []byte
}

// event is a change of one object.
type event struct {
	object
	kind watch.EventType
}

// store has the objects of one resource.
type store struct {
	mu      sync.RWMutex // guards what follows
	objects map[string]object
	// history are the last changes, oldest first; forgotten is the version of the
	// newest one that is gone. version is the one of the last change.
	history            []event
	forgotten, version uint64
	// changed is closed, and replaced, at a change.
	changed chan struct{}
}

func newStore() *store {
	return &store{objects: map[string]object{}, changed: make(chan struct{})}
}

// apply makes one change under the key.
func (s *store) apply(key string, version uint64, data []byte, deleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := event{object: object{version, data}, kind: watch.Added}
	if _, exists := s.objects[key]; exists {
		e.kind = watch.Modified
	}
	if deleted {
		e.kind = watch.Deleted
		delete(s.objects, key)
	} else {
		s.objects[key] = e.object
	}
	s.version = version
	s.history = append(s.history, e)
	if len(s.history) > 2*historyLength {
		s.forget(len(s.history) - historyLength)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// forget drops the oldest changes. Call under lock.
func (s *store) forget(count int) {
	if count > 0 {
		s.forgotten = s.history[count-1].version
		s.history = slices.Clone(s.history[count:])
	}
}

// keyed is an object with its key.
type keyed struct {
	key string
	object
}

// snapshot returns all objects by key, and the version at which they are so.
func (s *store) snapshot() ([]keyed, uint64) {
	s.mu.RLock()
	all := make([]keyed, 0, len(s.objects))
	for key, o := range s.objects {
		all = append(all, keyed{key, o})
	}
	version := s.version
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b keyed) int {
		if a.key < b.key {
			return -1
		}
		return 1 // keys differ
	})
	return all, version
}

// since returns the changes after a version, the version they lead to, and a
// channel that is closed at the next one; false when some are forgotten.
func (s *store) since(version uint64) (events []event, now uint64, changed <-chan struct{}, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if version < s.forgotten {
		return nil, 0, nil, false
	}
	first, _ := slices.BinarySearchFunc(s.history, version+1, func(e event, v uint64) int {
		switch {
		case e.version < v:
			return -1
		case e.version > v:
			return 1
		default:
			return 0
		}
	})
	return slices.Clone(s.history[first:]), s.version, s.changed, true
}
