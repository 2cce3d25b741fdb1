package scheduler

import "github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"

// Images maps an image name to how the scheduler scores it.
type Images map[string]imageState

// imageState is the size that the scheduler uses for an image and how many nodes
// have it.
type imageState struct {
	size  int64
	nodes int64
}

// Add counts an image of one more node.
func (t Images) Add(i nodes.Image) {
	state, ok := t[i.Name]
	if !ok {
		state.size = i.Size
	}
	state.nodes++
	t[i.Name] = state
}

// Remove counts an image of one node less.
func (t Images) Remove(name string) {
	state := t[name]
	if state.nodes--; state.nodes <= 0 {
		delete(t, name)
		return
	}
	t[name] = state
}
