package attack

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/podstream"
)

const (
	// probeInterval is shorter than a kubelet's, so that a row has enough of them.
	probeInterval = time.Second
	// probeTimeout is the default of a probe.
	probeTimeout = time.Second
)

// probes ask the replicas as a kubelet does.
type probes struct {
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu sync.Mutex // guards most
	// most is how many probes of one kind of a replica failed in a row.
	most int
}

// watchProbes asks whether the replicas are ready and alive until stop.
func watchProbes(ctx context.Context, b *bed) *probes {
	ctx, cancel := context.WithCancel(ctx)
	p := &probes{cancel: cancel}
	// A kubelet uses a new connection for each probe.
	asker := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: probeTimeout}
	for _, replica := range b.installed.Replicas() {
		for _, path := range []string{"/readyz", "/healthz"} {
			p.running.Go(func() { p.ask(ctx, asker, "http://"+replica.HealthAddress()+path) })
		}
	}
	return p
}

// ask probes until ctx ends.
func (p *probes) ask(ctx context.Context, asker *http.Client, url string) {
	inARow := 0
	for podstream.Pause(ctx, probeInterval) {
		_, err := controlplane.Read(ctx, asker, url)
		if ctx.Err() != nil {
			return
		}
		inARow++
		if err == nil {
			inARow = 0
		}
		p.mu.Lock()
		p.most = max(p.most, inARow)
		p.mu.Unlock()
	}
}

// stop returns how many probes failed in a row.
func (p *probes) stop() int {
	p.cancel()
	p.running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}
