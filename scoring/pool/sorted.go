package pool

import (
	"slices"

	"github.com/google/btree"
)

// A pool that is kept changes with every event, so its nodes are in trees. A pool that is
// made begins as sorted lists, which takes half of the time that trees take: that is all
// that a pool for one decision needs.

// Sorted is the nodes of a pool in one of its two orders, for readers.
type Sorted[T any] interface {
	// Len is how many there are.
	Len() int
	// Ascend calls visit for one after another until visit returns false:
	// AscendGreaterOrEqual for those that do not come before from, AscendRange for those of
	// them that come before to.
	Ascend(visit btree.ItemIteratorG[T])
	AscendGreaterOrEqual(from T, visit btree.ItemIteratorG[T])
	AscendRange(from, to T, visit btree.ItemIteratorG[T])
}

// changing is Sorted for the pool itself.
type changing[T any] interface {
	Sorted[T]
	ReplaceOrInsert(item T) (replaced T, found bool)
	Delete(item T) (deleted T, found bool)
}

// readable returns what readers get. A tree is cloned, so that theirs stays as it is. A
// list has one reader only, who is done with it before the list changes.
func readable[T any](of changing[T]) Sorted[T] {
	if tree, ok := of.(*btree.BTreeG[T]); ok {
		return tree.Clone()
	}
	return of
}

// treeDegree of a pool's tree: nodes of 7 to 15 entries, which a change after a
// view copies, four deep at 15,000 entries.
const treeDegree = 8

func treeOf[T any](items Sorted[T], less btree.LessFunc[T]) *btree.BTreeG[T] {
	tree := btree.NewG(treeDegree, less)
	items.Ascend(func(item T) bool {
		tree.ReplaceOrInsert(item)
		return true
	})
	return tree
}

// list has the methods of a tree that pools use, and does the same.
type list[T any] struct {
	items   []T
	compare func(a, b T) int
}

// listOf sorts the items, which belong to the list then.
func listOf[T any](items []T, compare func(a, b T) int) *list[T] {
	slices.SortFunc(items, compare)
	return &list[T]{items: items, compare: compare}
}

func (l *list[T]) find(item T) (at int, found bool) {
	return slices.BinarySearchFunc(l.items, item, l.compare)
}

// Len implements Sorted.
func (l *list[T]) Len() int { return len(l.items) }

// Ascend implements Sorted.
func (l *list[T]) Ascend(visit btree.ItemIteratorG[T]) { each(l.items, visit) }

// AscendGreaterOrEqual implements Sorted.
func (l *list[T]) AscendGreaterOrEqual(from T, visit btree.ItemIteratorG[T]) {
	begin, _ := l.find(from)
	each(l.items[begin:], visit)
}

// AscendRange implements Sorted.
func (l *list[T]) AscendRange(from, to T, visit btree.ItemIteratorG[T]) {
	begin, _ := l.find(from)
	end, _ := l.find(to)
	each(l.items[begin:max(begin, end)], visit)
}

func each[T any](items []T, visit btree.ItemIteratorG[T]) {
	for i := range items {
		if !visit(items[i]) {
			return
		}
	}
}

// ReplaceOrInsert implements changing.
func (l *list[T]) ReplaceOrInsert(item T) (replaced T, found bool) {
	at, found := l.find(item)
	if !found {
		l.items = slices.Insert(l.items, at, item)
		return replaced, false
	}
	replaced, l.items[at] = l.items[at], item
	return replaced, true
}

// Delete implements changing.
func (l *list[T]) Delete(item T) (deleted T, found bool) {
	at, found := l.find(item)
	if found {
		deleted = l.items[at]
		l.items = slices.Delete(l.items, at, at+1)
	}
	return deleted, found
}
