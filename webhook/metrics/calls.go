package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
)

const (
	// silence is how long nobody may have asked, while GPU pods appear that we
	// should have been asked about, before that is called a fault. A rolling
	// restart or an expired connection takes seconds.
	silence = 5 * time.Minute
	// callCheckInterval is how often that is looked at.
	callCheckInterval = 30 * time.Second
)

// CallCheck warns when nothing calls the webhook although there is reason to: a
// control plane that cannot reach the pod, a wrong CA, a deleted webhook
// configuration. With failurePolicy Ignore nothing else shows that. It is a
// manager.Runnable, to be started once.
type CallCheck struct {
	// unsteered is how many pods appeared without a decision, lastRequest when a
	// request was handled (Unix nanoseconds, 0: never).
	unsteered   func() int
	lastRequest func() int64
	now         func() time.Time
	log         logr.Logger
	started     time.Time
	// seen is the last request known to the latest check, before the number of
	// pods when it became known.
	seen    int64
	before  int
	missing atomic.Bool
}

// NewCallCheck returns a check that compares the requests with the pods of the index, and
// registers its metrics. It panics if the registry has them already.
func NewCallCheck(registry prometheus.Registerer, requests *Requests, ix *index.Index, log logr.Logger) *CallCheck {
	c := newCallCheck(ix.Unsteered, requests.lastRequest.Load, time.Now, log)
	registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "gpu_binpacker_unsteered_pods_total",
			Help: "GPU pods that appeared in opted-in namespaces without a decision of ours, for whatever reason. Every replica counts all.",
		}, func() float64 { return float64(ix.Unsteered()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gpu_binpacker_calls_missing",
			Help: "1 when GPU pods appear in opted-in namespaces without a decision and this replica has not been asked about any pod for minutes.",
		}, func() float64 {
			if c.missing.Load() {
				return 1
			}
			return 0
		}),
	)
	return c
}

func newCallCheck(unsteered func() int, lastRequest func() int64, now func() time.Time, log logr.Logger) *CallCheck {
	return &CallCheck{unsteered: unsteered, lastRequest: lastRequest, now: now, log: log, started: now()}
}

// Start checks every 30 seconds until the context ends, and returns nil then.
func (c *CallCheck) Start(ctx context.Context) error {
	ticker := time.NewTicker(callCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			c.check()
		}
	}
}

// NeedLeaderElection is false: every replica checks for itself.
func (c *CallCheck) NeedLeaderElection() bool { return false }

func (c *CallCheck) check() {
	last, unsteered := c.lastRequest(), c.unsteered()
	since := c.started
	if last != 0 {
		since = time.Unix(0, last)
	}
	// The pod of the last request may appear a moment after it.
	if last != c.seen || last != 0 && c.now().Sub(since) <= callCheckInterval {
		c.seen, c.before = last, unsteered
	}
	missing := unsteered > c.before && c.now().Sub(since) >= silence
	if was := c.missing.Swap(missing); missing && !was {
		c.log.Info("Nothing calls this replica, but GPU pods appear in opted-in namespaces without a decision. Unless another replica leaves them alone: can the API server reach the webhook, and does it trust the certificate?",
			"podsWithoutDecision", unsteered-c.before, "lastRequest", describe(last))
	}
}

func describe(nanoseconds int64) string {
	if nanoseconds == 0 {
		return "never"
	}
	return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339)
}
