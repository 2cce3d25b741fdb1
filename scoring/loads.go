package scoring

import (
	"strconv"
	"sync"
)

// loads holds each of the loads that thousands of pods have in common once.
type loads struct {
	mu   sync.Mutex
	held map[string]*load
}

// maxLoads is when all are forgotten: many more than kinds of pods in a cluster.
const maxLoads = 10_000

// one returns a load that is the same as l.
func (h *loads) one(l load) *load {
	key := make([]byte, 0, 256)
	key = strconv.AppendInt(append(key, 'p'), l.pods, 10)
	key = strconv.AppendInt(append(key, 'c'), l.scoringCPU, 10)
	key = strconv.AppendInt(append(key, 'm'), l.scoringMemory, 10)
	for _, list := range []amounts{l.requests, l.occupants, l.terminating} {
		key = append(key, ';')
		for _, a := range list {
			key = strconv.AppendInt(append(append(key, a.name...), '='), a.value, 10)
			key = append(key, ',')
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.held[string(key)]; held != nil {
		return held
	}
	if h.held == nil || len(h.held) >= maxLoads {
		h.held = map[string]*load{}
	}
	h.held[string(key)] = &l
	return &l
}
