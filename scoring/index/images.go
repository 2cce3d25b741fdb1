package index

import (
	"maps"
	"slices"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

// images counts which images are on how many nodes. Readers get the table itself; it is
// copied before the next change.
type images struct {
	table scheduler.Images
	// lent is true while a reader may have the table.
	lent bool
}

// lend returns the table for reading. It stays as it is whatever happens next.
func (i *images) lend() scheduler.Images {
	i.lent = true
	return i.table
}

// move moves a node's images from its old to its new state, either of which may be nil, in
// the order of the scheduler's cache: an image's size is the one first seen, until no node
// has the image any more.
func (i *images) move(old, next *nodes.Node) {
	if old != nil && next != nil && slices.Equal(old.Images, next.Images) {
		return
	}
	if i.lent {
		i.table = maps.Clone(i.table)
		i.lent = false
	}
	if old != nil {
		for _, one := range old.Images {
			i.table.Remove(one.Name)
		}
	}
	if next != nil {
		for _, one := range next.Images {
			i.table.Add(one)
		}
	}
}
