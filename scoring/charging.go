package scoring

// charge moves a record's load to where next says. Call under lock.
func (ix *Index) charge(r *podRecord, next ownership) {
	if r.applied {
		ix.apply(-1, charge{node: r.node, load: r.load})
		ix.countCompanions(-1, r.load)
	}
	r.ownership = next
	ix.indexTarget(r)
	r.applied = next.owner > ownerTarget || next.owner == ownerTarget && ix.enabled[r.namespace]
	if r.applied {
		ix.apply(1, charge{node: r.node, load: r.load})
		ix.countCompanions(1, r.load)
	}
}

// indexTarget keeps targets in step with a record's owner. Call under lock.
func (ix *Index) indexTarget(r *podRecord) {
	records := ix.targets[r.namespace]
	if r.owner != ownerTarget {
		delete(records, r)
		if len(records) == 0 {
			delete(ix.targets, r.namespace)
		}
		return
	}
	if records == nil {
		records = map[*podRecord]struct{}{}
		ix.targets[r.namespace] = records
	}
	records[r] = struct{}{}
}

// apply adds (sign 1) or takes away (-1) a charge. Call under lock.
func (ix *Index) apply(sign int64, c charge) {
	old := ix.states[c.node]
	if old == nil {
		old = &nodeState{}
	}
	ix.put(c.node, &nodeState{node: old.node, used: old.used.plus(sign, c.load)})
}

// put makes s the state of a node. Call under lock.
func (ix *Index) put(name string, s *nodeState) {
	ix.snapshot = nil
	at, listed := ix.position[name]
	if listed != (s.node != nil) || listed && ix.order[at].node != s.node {
		ix.nodeOrder = nil
	}
	switch {
	case s.node != nil && listed:
		ix.order[at] = s
	case s.node != nil:
		ix.position[name] = len(ix.order)
		ix.order = append(ix.order, s)
	case listed:
		last := len(ix.order) - 1
		moved := ix.order[last]
		ix.order[at], ix.position[moved.object.Name] = moved, at
		ix.order = ix.order[:last]
		delete(ix.position, name)
	}
	if s.node == nil && s.used.pods == 0 {
		delete(ix.states, name)
		return
	}
	ix.states[name] = s
}
