package scoring

// peers estimates how many decisions other replicas have made that this one has
// not seen yet. Requests are spread over the replicas, so in the time that a pod
// takes to appear in the watch, the others decide about as many pods, compared
// with our own, as they did shortly before. Without this, replicas fill the same
// node at the same time and a burst falls behind: see TestTwoReplicasBurst.
type peers struct {
	// own and others count the steered pods seen of late, by whose decision they
	// were.
	own, others float64
	// owed is the part of a decision not yet added.
	owed float64
}

const (
	// peerMemory is how many pods the shares are taken from, as the sum of a
	// series that halves: enough to be steady, few enough to follow a rollout.
	peerMemory = 64
	// maxPeers bounds the estimate when our own share is small by chance.
	maxPeers = 4
)

// saw counts a steered pod that appeared in the watch.
func (p *peers) saw(own bool) {
	if own {
		p.own++
	} else {
		p.others++
	}
	if p.own+p.others > peerMemory {
		p.own /= 2
		p.others /= 2
	}
}

// unseen returns how many decisions of others to count with one of our own.
func (p *peers) unseen() int64 {
	if p.own == 0 {
		return 0
	}
	p.owed += min(p.others/p.own, maxPeers)
	whole := int64(p.owed)
	p.owed -= float64(whole)
	return whole
}
