package scoring

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// imageTable maps an image name to how the scheduler scores it.
type imageTable map[string]imageState

// imageState is the size that the scheduler uses for an image and how many nodes
// have it.
type imageState struct {
	size  int64
	nodes int64
}

// countImages moves a node's images from its old to its new state. The size of
// an image is the one first seen, as in the scheduler's cache. Call under lock.
func (ix *Index) countImages(old, next *node, object *corev1.Node) {
	if old != nil && next != nil && slices.Equal(old.images, next.images) {
		return
	}
	if ix.imagesShared {
		ix.images = maps.Clone(ix.images)
		ix.imagesShared = false
	}
	if next != nil {
		for i := range object.Status.Images {
			for _, name := range object.Status.Images[i].Names {
				ix.addImage(name, object.Status.Images[i].SizeBytes)
			}
		}
	}
	if old != nil {
		for _, name := range old.images {
			ix.removeImage(name)
		}
	}
}

func (ix *Index) addImage(name string, size int64) {
	state, ok := ix.images[name]
	if !ok {
		state.size = size
	}
	state.nodes++
	ix.images[name] = state
}

func (ix *Index) removeImage(name string) {
	state := ix.images[name]
	if state.nodes--; state.nodes <= 0 {
		delete(ix.images, name)
		return
	}
	ix.images[name] = state
}
