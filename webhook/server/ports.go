package server

import (
	"context"
	"crypto/tls"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// The ports for kubelets and scrapers. Where no network policy is enforced every pod of
// the cluster reaches them. They are served by servers of our own, since
// controller-runtime's take headers of 1 MiB for 32 seconds each, on any number of
// connections.

// portLimits are the limits of such a port.
type portLimits struct {
	// connections may be open; a further one ends the oldest.
	connections int
	headerBytes int
	// request bounds the time for a request's header and its body, answer from the header to
	// the end of the answer, idle the time between requests; 0: one request per connection.
	request, answer, idle time.Duration
}

var (
	// healthLimits: a kubelet opens a connection for each probe, sends five short headers and
	// gives up after a second. The probes of one pod are two; other nodes' and people's are
	// rare.
	healthLimits = portLimits{connections: 32, headerBytes: 1 << 10, request: time.Second, answer: 2 * time.Second}
	// metricsLimits: scrapers keep their connection for the next scrape, and send a token.
	// The API server is asked about it, for which it has 10 seconds.
	metricsLimits = portLimits{
		connections: 16, headerBytes: maxHeaderBytes,
		request: 5 * time.Second, answer: 30 * time.Second, idle: 2 * time.Minute,
	}
)

// maxScrapes is how many scrapes are answered at once; each takes as much memory as the
// metrics have bytes.
const maxScrapes = 4

// NewHealthPort returns what serves /healthz and /readyz, nil if that is switched off. It is
// ready when all checks return nil; they are called in parallel. The port is open when
// NewHealthPort returns; the error says why it could not be opened.
func NewHealthPort(cfg config.Server, ready map[string]healthz.Checker, log logr.Logger) (*manager.Server, error) {
	if cfg.HealthAddress == "0" {
		return nil, nil
	}
	mux := http.NewServeMux()
	for path, checks := range map[string]map[string]healthz.Checker{"/healthz": {"ping": healthz.Ping}, "/readyz": ready} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: checks})
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler) // one check of it
	}
	listener, err := net.Listen("tcp", cfg.HealthAddress)
	if err != nil {
		return nil, fmt.Errorf("opening the port for health probes: %w", err)
	}
	return newPort("health probe", listener, mux, healthLimits, log), nil
}

// NewMetricsPort returns what serves /metrics, nil if that is switched off: over HTTPS,
// to callers whose token the API server of the client knows and who may read them, unless
// that is switched off. The port is open when NewMetricsPort returns; the error says why it
// could not be opened or protected.
func NewMetricsPort(cfg config.Server, restConfig *rest.Config, client *http.Client, log logr.Logger) (*manager.Server, error) {
	if cfg.MetricsAddress == "0" {
		return nil, nil
	}
	handler := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: maxScrapes,
	})
	listener, err := net.Listen("tcp", cfg.MetricsAddress)
	if err != nil {
		return nil, fmt.Errorf("opening the port for metrics: %w", err)
	}
	if !cfg.MetricsInsecure {
		if handler, err = authorized(restConfig, client, handler, log); err != nil {
			return nil, err
		}
		if listener, err = encrypted(listener, cfg); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)
	return newPort("metrics", listener, mux, metricsLimits, log), nil
}

// authorized lets those through who may read the metrics.
func authorized(restConfig *rest.Config, client *http.Client, handler http.Handler, log logr.Logger) (http.Handler, error) {
	filter, err := protectMetrics(restConfig, client)
	if err != nil {
		return nil, fmt.Errorf("preparing the authentication of metrics: %w", err)
	}
	return filter(log, handler)
}

// encrypted adds TLS with a certificate that is made now and signed by nobody.
func encrypted(listener net.Listener, cfg config.Server) (net.Listener, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate for metrics: %w", err)
	}
	tlsConfig := &tls.Config{Certificates: []tls.Certificate{pair}}
	tlsOptions(cfg)(tlsConfig)
	return tls.NewListener(listener, tlsConfig), nil
}

// newPort returns a server with every limit set, for a manager to run.
func newPort(name string, listener net.Listener, handler http.Handler, limits portLimits, log logr.Logger) *manager.Server {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	connections := &newestConnections{limit: limits.connections}
	server := &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		BaseContext:       func(net.Listener) context.Context { return context.Background() },
		ConnState:         connections.observe,
		ErrorLog:          stdlog.New(errorLog{log}, "", 0),
		MaxHeaderBytes:    limits.headerBytes,
		ReadHeaderTimeout: limits.request,
		ReadTimeout:       limits.request,
		WriteTimeout:      limits.answer,
		IdleTimeout:       limits.idle,
	}
	server.SetKeepAlivesEnabled(limits.idle > 0)
	ends := shutdownTime
	return &manager.Server{Name: name, Server: server, Listener: listener, ShutdownTimeout: &ends}
}

// newestConnections closes the oldest connection when there are too many. Were new ones
// closed, as on the webhook's port, somebody who holds all could keep the kubelet out until
// it ends the process; so whoever is served within a moment is served.
type newestConnections struct {
	limit int

	mu   sync.Mutex // guards open
	open []net.Conn // as they came
}

// observe is the server's ConnState hook.
func (c *newestConnections) observe(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if oldest := c.add(conn); oldest != nil {
			_ = oldest.Close()
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(conn)
	case http.StateActive, http.StateIdle:
	}
}

// add notes a connection and returns the one to be closed for it, nil for none.
func (c *newestConnections) add(conn net.Conn) (oldest net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open = append(c.open, conn); len(c.open) > c.limit {
		oldest = c.open[0]
		c.open = slices.Delete(c.open, 0, 1)
	}
	return oldest
}

func (c *newestConnections) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = slices.DeleteFunc(c.open, func(other net.Conn) bool { return other == conn })
}
