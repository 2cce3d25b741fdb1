package pool

import (
	"slices"

	"github.com/google/btree"
)

// A pool that is kept changes with every event, so its nodes are in trees. A pool that is
// made begins as sorted lists, which takes a third of the time that trees take: that is all
// that a pool for one decision needs.

// Sorted is the nodes of a pool in one of its two orders: either a tree or a list. (As an
// interface it would have each decision allocate the functions that it passes.)
type Sorted[T any] struct {
	tree *btree.BTreeG[T]
	list *list[T]
}

// Len is how many there are.
func (s Sorted[T]) Len() int {
	if s.tree != nil {
		return s.tree.Len()
	}
	return len(s.list.items)
}

// Ascend calls visit for one after another until visit returns false.
func (s Sorted[T]) Ascend(visit func(T) bool) {
	if s.tree != nil {
		s.tree.Ascend(visit)
		return
	}
	each(s.list.items, visit)
}

// AscendGreaterOrEqual is Ascend for those that do not come before from.
func (s Sorted[T]) AscendGreaterOrEqual(from T, visit func(T) bool) {
	if s.tree != nil {
		s.tree.AscendGreaterOrEqual(from, visit)
		return
	}
	begin, _ := s.list.find(from)
	each(s.list.items[begin:], visit)
}

// AscendRange is Ascend for those that do not come before from, and before to.
func (s Sorted[T]) AscendRange(from, to T, visit func(T) bool) {
	if s.tree != nil {
		s.tree.AscendRange(from, to, visit)
		return
	}
	begin, _ := s.list.find(from)
	end, _ := s.list.find(to)
	each(s.list.items[begin:max(begin, end)], visit)
}

func each[T any](items []T, visit func(T) bool) {
	for i := range items {
		if !visit(items[i]) {
			return
		}
	}
}

// put puts an item in its place, instead of the one that is there if there is one.
func (s Sorted[T]) put(item T) {
	if s.tree != nil {
		s.tree.ReplaceOrInsert(item)
		return
	}
	if at, found := s.list.find(item); found {
		s.list.items[at] = item
	} else {
		s.list.items = slices.Insert(s.list.items, at, item)
	}
}

// take takes away what is in the place of an item.
func (s Sorted[T]) take(item T) {
	if s.tree != nil {
		s.tree.Delete(item)
		return
	}
	if at, found := s.list.find(item); found {
		s.list.items = slices.Delete(s.list.items, at, at+1)
	}
}

// forReaders returns what readers get. A tree is cloned, so that theirs stays as it is. A
// list has one reader only, who is done with it before the list changes.
func (s Sorted[T]) forReaders() Sorted[T] {
	if s.tree != nil {
		return Sorted[T]{tree: s.tree.Clone()}
	}
	return s
}

// treeDegree of a pool's tree: nodes of 7 to 15 entries, which a change after a
// view copies, four deep at 15,000 entries.
const treeDegree = 8

// asTree returns a list as a tree. Every other item comes first and those between them
// later: a tree's nodes stay half empty when all items come in order.
func (s Sorted[T]) asTree(less btree.LessFunc[T]) Sorted[T] {
	tree := btree.NewG(treeDegree, less)
	for from := range 2 {
		for i := from; i < len(s.list.items); i += 2 {
			tree.ReplaceOrInsert(s.list.items[i])
		}
	}
	return Sorted[T]{tree: tree}
}

// list is items in the order of compare.
type list[T any] struct {
	items   []T
	compare func(a, b T) int
}

// listOf sorts the items, which belong to the list then.
func listOf[T any](items []T, compare func(a, b T) int) Sorted[T] {
	slices.SortFunc(items, compare)
	return Sorted[T]{list: &list[T]{items: items, compare: compare}}
}

// find returns the place of an item, and whether one is there.
func (l *list[T]) find(item T) (at int, found bool) {
	return slices.BinarySearchFunc(l.items, item, l.compare)
}
