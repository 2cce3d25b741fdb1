package scoring

import (
	"maps"
	"slices"
)

// imageTable maps an image name to how the scheduler scores it.
type imageTable map[string]imageState

// imageState is the size that the scheduler uses for an image and how many nodes
// have it.
type imageState struct {
	size  int64
	nodes int64
}

// countImages moves a node's images from its old to its new state, in the order
// of the scheduler's cache: an image's size is the one first seen, until no node
// has the image any more. Call under lock.
func (ix *Index) countImages(old, next *node) {
	if old != nil && next != nil && slices.Equal(old.images, next.images) {
		return
	}
	if ix.imagesShared {
		ix.images = maps.Clone(ix.images)
		ix.imagesShared = false
	}
	if old != nil {
		for _, i := range old.images {
			ix.removeImage(i.name)
		}
	}
	if next != nil {
		for _, i := range next.images {
			ix.addImage(i)
		}
	}
}

func (ix *Index) addImage(i nodeImage) {
	state, ok := ix.images[i.name]
	if !ok {
		state.size = i.size
	}
	state.nodes++
	ix.images[i.name] = state
}

func (ix *Index) removeImage(name string) {
	state := ix.images[name]
	if state.nodes--; state.nodes <= 0 {
		delete(ix.images, name)
		return
	}
	ix.images[name] = state
}
