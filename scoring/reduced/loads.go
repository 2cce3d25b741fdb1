package reduced

import (
	"strconv"
	"sync"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// loads holds each of the loads that thousands of pods have in common once.
type loads struct {
	mu     sync.Mutex
	recent *nodes.Recent[*demand.Load]
}

const (
	// MaxLoadBytes is what all loads together may take, twice: see nodes.Recent. It is enough
	// for 8,000 kinds of pods with four resources each, many more than a cluster has.
	MaxLoadBytes = 4 << 20
	// loadCost is what an entry takes besides its key and its load: the pointer and the key's
	// header in the map with its spare room, and the size classes.
	loadCost = 120
)

func newLoads() *loads { return &loads{recent: nodes.NewRecent[*demand.Load](MaxLoadBytes)} }

// one returns a load that is the same as l.
func (h *loads) one(l demand.Load) *demand.Load {
	key := make([]byte, 0, 256)
	key = strconv.AppendInt(append(key, 'p'), l.Pods, 10)
	key = strconv.AppendInt(append(key, 'c'), l.ScoringCPU, 10)
	key = strconv.AppendInt(append(key, 'm'), l.ScoringMemory, 10)
	for _, list := range []demand.Amounts{l.Requests, l.Occupants, l.Terminating} {
		key = append(key, ';')
		for _, a := range list {
			key = strconv.AppendInt(append(append(key, a.Name...), '='), a.Value, 10)
			key = append(key, ',')
		}
	}
	cost := len(key) + l.Bytes() + loadCost
	h.mu.Lock()
	defer h.mu.Unlock()
	if held, ok := h.recent.Get(string(key), cost); ok {
		return held
	}
	h.recent.Put(string(key), &l, cost)
	return &l
}
