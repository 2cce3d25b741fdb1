package index

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
)

// Going through all nodes, for a pod of a kind that has no pool, takes some tens of
// times as long as a decision by a pool. Whoever creates pods of ever new kinds could have all
// processors busy with that, and decisions about everybody's pods would wait. So this is
// done one at a time. Namespaces take turns at it: one of the pods of each waits together
// with those of the other namespaces, in the order in which they came, and the namespace's
// other pods wait for that one. So a pod waits for one pod of each other namespace at most,
// however many those create.

// turns are who goes through all nodes, and who waits for it.
type turns struct {
	// one is what the namespaces wait for.
	one *semaphore.Weighted
	// maxKinds is of how many kinds pods of one namespace may wait.
	maxKinds int

	mu sync.Mutex // guards lines and what is in them
	// lines: namespace -> its pods that wait or have their turn. Where there is none, there
	// is no line.
	lines map[string]*line
}

// line is the pods of one namespace.
type line struct {
	// first is who waits together with other namespaces.
	first *semaphore.Weighted
	// kinds is how many of each kind there are.
	kinds map[want]int
}

// want is what somebody wants: the pool of a kind, which all that wait for it can use, or
// for a query that only looks, one of its own.
type want struct {
	kind pool.Kind
	look *Query
}

// waitingShare is the part of all requests at once, as configured, that pods of one namespace
// may be by waiting for new kinds: of how many kinds, since all pods of a kind are done when
// one of them is. A request that waits keeps others from being read; further ones get no
// turn at all, as if their time were over, so that pods of other namespaces get in. What
// may wait before that, by the default 32 kinds, is about a tenth of a second's work in a
// cluster of 5,000 nodes.
const waitingShare = 2

// errManyKinds says that pods of too many new kinds wait in one namespace.
var errManyKinds = errors.New("pods of too many new kinds in the namespace")

func newTurns(maxKinds int) *turns {
	return &turns{one: semaphore.NewWeighted(1), maxKinds: max(maxKinds, 1), lines: map[string]*line{}}
}

// turn is somebody's turn.
type turn struct {
	of        *turns
	line      *line
	namespace string
	want      want
}

// take waits for a turn, which has to be ended.
func (t *turns) take(ctx context.Context, namespace string, w want) (*turn, error) {
	l := t.enter(namespace, w)
	if l == nil {
		return nil, errManyKinds
	}
	mine := &turn{of: t, line: l, namespace: namespace, want: w}
	if err := l.first.Acquire(ctx, 1); err != nil {
		mine.leave()
		return nil, err
	}
	if err := t.one.Acquire(ctx, 1); err != nil {
		l.first.Release(1)
		mine.leave()
		return nil, err
	}
	return mine, nil
}

// enter counts a pod to its line, nil if the line is too long.
func (t *turns) enter(namespace string, w want) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[namespace]
	if l == nil {
		l = &line{first: semaphore.NewWeighted(1), kinds: map[want]int{}}
		t.lines[namespace] = l
	}
	if l.kinds[w] == 0 && len(l.kinds) >= t.maxKinds {
		return nil
	}
	l.kinds[w]++
	return l
}

// end ends a turn: another namespace is next.
func (t *turn) end() {
	t.of.one.Release(1)
	t.line.first.Release(1)
	t.leave()
}

// leave takes a pod from its line.
func (t *turn) leave() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.line.kinds[t.want]--; t.line.kinds[t.want] == 0 {
		delete(t.line.kinds, t.want)
	}
	if len(t.line.kinds) == 0 {
		delete(t.of.lines, t.namespace)
	}
}

// wanted tells whether others wait for the same.
func (t *turn) wanted() bool {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.line.kinds[t.want] > 1
}
