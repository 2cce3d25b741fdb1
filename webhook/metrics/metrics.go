package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Requests are the metrics of admission requests. Label values are our own short words
// only, so their number is bounded. All methods are safe for parallel use.
type Requests struct {
	decisions *prometheus.CounterVec
	duration  prometheus.Histogram
	invalid   prometheus.Counter
	busy      prometheus.Counter
	// lastRequest is when a request was last handled, in Unix nanoseconds; 0: never.
	lastRequest atomic.Int64
}

// New registers the metrics of admission requests, all at zero. It panics if the registry
// has them already.
func New(registry prometheus.Registerer) *Requests {
	m := &Requests{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gpu_binpacker_decisions_total",
			Help: "Admission requests answered, by steering (ranked, late, none), reason for none, and whether it was a dry run.",
		}, []string{"steering", "reason", "dry_run"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gpu_binpacker_decision_duration_seconds",
			Help: "Time from a decoded admission request to its response.",
			// From a skipped pod on an idle machine to the decision timeout.
			Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
		}),
		invalid: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gpu_binpacker_invalid_requests_total",
			Help: "HTTP requests that were no valid AdmissionReview and got a non-2xx status.",
		}),
		busy: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gpu_binpacker_busy_requests_total",
			Help: "HTTP requests turned away with status 503 because too many were under way.",
		}),
	}
	// Failures begin at zero: an increase from nothing is none to Prometheus, and the
	// first one counts.
	for _, reason := range []steering.Reason{steering.ReasonPanic, steering.ReasonPatch, steering.ReasonTimeout} {
		m.decisions.WithLabelValues("none", string(reason), "false")
	}
	registry.MustRegister(m.decisions, m.duration, m.invalid, m.busy, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gpu_binpacker_last_request_timestamp_seconds",
		Help: "When this replica was last asked about a pod, Unix time; 0 for never.",
	}, func() float64 { return float64(m.lastRequest.Load()) / float64(time.Second) }))
	return m
}

// Observe counts a request that was answered: how its pod is steered (ranked, late or none,
// a metric label), the reason if it is not ranked, whether it was a dry run, and how long the
// answer took from the decoded request on.
func (m *Requests) Observe(how string, reason steering.Reason, dryRun bool, took time.Duration) {
	m.decisions.WithLabelValues(how, string(reason), strconv.FormatBool(dryRun)).Inc()
	m.duration.Observe(took.Seconds())
	m.lastRequest.Store(time.Now().UnixNano())
}

// CountInvalid counts an HTTP request that was no valid AdmissionReview.
func (m *Requests) CountInvalid() { m.invalid.Inc() }

// CountBusy counts an HTTP request that was turned away because too many were under way.
func (m *Requests) CountBusy() { m.busy.Inc() }

// RegisterIndex registers metrics that read the index when they are scraped. It panics if
// the registry has them already.
func RegisterIndex(registry prometheus.Registerer, ix *index.Index) {
	gauge := func(name, help string, value func(index.Size) int) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(value(ix.Size())) }))
	}
	gauge("gpu_binpacker_index_nodes", "Nodes in the index.", func(s index.Size) int { return s.Nodes })
	gauge("gpu_binpacker_index_pods", "Pods in the index.", func(s index.Size) int { return s.Pods })
	gauge("gpu_binpacker_index_reservations", "Decisions whose pod was not seen yet.", func(s index.Size) int { return s.Reservations })
	gauge("gpu_binpacker_waiting_pods", "Steered pods that have no node yet.", func(s index.Size) int { return s.Waiting })
	registerBackoff(registry, ix)
	gauge("gpu_binpacker_replicas", "Pods of this webhook that are ready.", func(s index.Size) int { return s.Replicas })
	gauge("gpu_binpacker_index_synced", "1 when the index has seen all nodes and pods.", func(index.Size) int {
		if ix.Synced() {
			return 1
		}
		return 0
	})
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gpu_binpacker_index_last_event_timestamp_seconds",
		Help: "When the latest event of a node, pod or namespace reached this replica, Unix time; 0 for never.",
	}, func() float64 {
		if at := ix.LastEvent(); !at.IsZero() {
			return float64(at.UnixNano()) / float64(time.Second)
		}
		return 0
	}))
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "gpu_binpacker_index_negative_usage_total",
		Help: "How often more was given back of a node than was taken. More than 0 is a bug.",
	}, func() float64 { return float64(ix.Negatives()) }))
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "gpu_binpacker_scanned_decisions_total",
		Help: "Decisions that went through all nodes, since the pod was of a new kind and its namespace had its share of what is kept for kinds of pods.",
	}, func() float64 { return float64(ix.Scanned()) }))
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "gpu_binpacker_reservations_unseen_total",
		Help: "Decisions whose pod was not seen before their reservation ended: its creation was refused later, or the watch stalls.",
	}, func() float64 { return float64(ix.Unseen()) }))
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gpu_binpacker_clock_ahead_seconds",
		Help: "By how much this replica's clock is ahead of the API server's, by the pods that came lately; up to a second too much where they are few.",
	}, func() float64 { return ix.ClockAhead().Seconds() }))
	registerLandings(registry, ix)
	registry.MustRegister(occupancyCollector{func() []nodes.Occupancy {
		if !ix.Synced() {
			// Nodes whose pods were not seen yet would look empty.
			return nil
		}
		return ix.Occupancy()
	}})
}

var schedulerVersion = prometheus.NewDesc("gpu_binpacker_scheduler_version_info",
	"1 for each version of kube-scheduler that weights are right for, by source: server (the API server tells it), configured (scheduler.kubernetesVersion) or assumed (neither is known). There are two for ten minutes after the API server's version has changed.",
	[]string{"version", "source"}, nil)

// schedulerVersionCollector shows by which versions of the scheduler decisions go.
type schedulerVersionCollector struct{ version *scheduler.Version }

// RegisterSchedulerVersion registers the metric of the scheduler's version, which is read
// when it is scraped. It panics if the registry has the metric already.
func RegisterSchedulerVersion(registry prometheus.Registerer, version *scheduler.Version) {
	registry.MustRegister(schedulerVersionCollector{version})
}

// Describe implements prometheus.Collector.
func (schedulerVersionCollector) Describe(descs chan<- *prometheus.Desc) { descs <- schedulerVersion }

// Collect implements prometheus.Collector.
func (c schedulerVersionCollector) Collect(metrics chan<- prometheus.Metric) {
	source := string(c.version.Source())
	for _, version := range c.version.Held() {
		metrics <- prometheus.MustNewConstMetric(schedulerVersion, prometheus.GaugeValue, 1, version.String(), source)
	}
}

// RegisterCertificate registers the metric of the served certificate's end. The function
// expiry tells when that is, and is zero while there is no certificate; it is called at each
// scrape, in parallel if there are several. RegisterCertificate panics if the registry has
// the metric already.
func RegisterCertificate(registry prometheus.Registerer, expiry func() time.Time) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gpu_binpacker_certificate_expiry_timestamp_seconds",
		Help: "When the certificate that is served now expires, Unix time; 0 while there is none.",
	}, func() float64 {
		if at := expiry(); !at.IsZero() {
			return float64(at.Unix())
		}
		return 0
	}))
}

// registerBackoff registers how many nodes are in back-off, for everybody and for the pods
// of some namespaces only.
func registerBackoff(registry prometheus.Registerer, ix *index.Index) {
	for scope, count := range map[string]func(index.Size) int{
		"everybody": func(s index.Size) int { return s.Backoff },
		"namespace": func(s index.Size) int { return s.NamespaceBackoff },
	} {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "gpu_binpacker_backoff_nodes",
			Help:        "Nodes that are no candidates for a while, since they refused GPU pods: for everybody, or for the pods of a namespace.",
			ConstLabels: prometheus.Labels{"scope": scope},
		}, func() float64 { return float64(count(ix.Size())) }))
	}
}

// registerLandings registers the counters of where steered pods went.
func registerLandings(registry prometheus.Registerer, ix *index.Index) {
	for _, landing := range []steering.Landing{steering.LandedTarget, steering.LandedListed, steering.LandedOther, steering.LandedLate} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "gpu_binpacker_landed_pods_total",
			Help:        "Steered pods seen to be bound, by where: the target node, another listed one, a node not listed, or late steering. Every replica counts all.",
			ConstLabels: prometheus.Labels{"where": string(landing)},
		}, func() float64 { return float64(ix.Landings()[landing]) }))
	}
}
