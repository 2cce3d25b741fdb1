package reduced

import (
	"strconv"
	"sync"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
)

// loads holds each of the loads that thousands of pods have in common once.
type loads struct {
	mu   sync.Mutex
	held map[string]*demand.Load
}

// maxLoads is when all are forgotten: many more than kinds of pods in a cluster.
const maxLoads = 10_000

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
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.held[string(key)]; held != nil {
		return held
	}
	if h.held == nil || len(h.held) >= maxLoads {
		h.held = map[string]*demand.Load{}
	}
	h.held[string(key)] = &l
	return &l
}
