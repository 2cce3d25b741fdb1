package scoring

// imageTable maps an image name to how the scheduler scores it.
type imageTable map[string]imageState

// imageState is the size that the scheduler uses for an image and how many nodes
// have it.
type imageState struct {
	size  int64
	nodes int64
}

// add counts an image of one more node.
func (t imageTable) add(i nodeImage) {
	state, ok := t[i.name]
	if !ok {
		state.size = i.size
	}
	state.nodes++
	t[i.name] = state
}

// remove counts an image of one node less.
func (t imageTable) remove(name string) {
	state := t[name]
	if state.nodes--; state.nodes <= 0 {
		delete(t, name)
		return
	}
	t[name] = state
}
