package server

import (
	"bytes"
	"context"
	"crypto/tls"
	stdlog "log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// Limits of connections. Those of requests are in http.go.
const (
	// keepAlive is how long a connection may be without a request. The API server's
	// client gives up an idle connection after 90 s (http.DefaultTransport). Closing
	// one earlier, or at that very moment, can meet a request on its way, which
	// would fail; so the client has to be the first, by a margin for busy machines.
	keepAlive = 120 * time.Second
	// headerTimeout bounds the wait for a request's header. For the first request
	// of a connection it counts from the TLS handshake on, and the client may keep
	// an unused connection as long as one that was used: see keepAlive.
	headerTimeout = keepAlive
	// readTimeout bounds the same and the body. For our path, ServeHTTP sets an
	// earlier end for the body.
	readTimeout = headerTimeout
	// writeTimeout bounds the time from a request's header to the end of its
	// answer: a second at most for the decision (decisionTimeout), the rest for
	// sending up to a few 100 KiB. It also bounds TLS handshakes, for which the API
	// server's client waits 10 s.
	writeTimeout = 10 * time.Second
	// maxHeaderBytes: the API server sends a few short headers, and with a
	// kubeconfig that says so a token, which is below 8 KiB.
	maxHeaderBytes = 16 << 10
	// maxConnections bounds open connections. The API server uses one for each call
	// under way; by default it has at most 200 creations under way and keeps 25
	// connections, so this is enough for eight of them on one replica.
	maxConnections = 2000
	// connectionBytes is what a connection takes at most before it has a request: 20 KiB with
	// its TLS state and buffers (TestConnectionMemory), and a header of maxHeaderBytes and the
	// 4 KiB that the HTTP server adds, of which the end does not come. All together: a sixth
	// of the Deployment's memory limit.
	connectionBytes = 40 << 10
)

// newHTTPServer returns the server with every limit set.
func newHTTPServer(ctx context.Context, handler http.Handler, tlsConfig *tls.Config, log logr.Logger) *http.Server {
	// HTTP/1 only, as the API server calls Services
	// (https://github.com/kubernetes/kubernetes/issues/75791). So one connection has
	// one request at a time, and what is known against HTTP/2 servers fails.
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	connections := &connectionLimit{limit: maxConnections, log: log}
	return &http.Server{
		Handler:           handler,
		TLSConfig:         tlsConfig,
		Protocols:         protocols,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withConn,
		ConnState:         connections.observe,
		ErrorLog:          stdlog.New(errorLog{log}, "", 0),
		IdleTimeout:       keepAlive,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
}

// connectionLimit closes connections above a limit as they come. That is
// better than to leave them waiting: the API server admits the pod at once instead
// of a second later.
type connectionLimit struct {
	limit int64
	open  atomic.Int64
	// full is set from the first connection too many until half of them are gone.
	full atomic.Bool
	log  logr.Logger
}

// observe is the server's ConnState hook.
func (c *connectionLimit) observe(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if c.open.Add(1) <= c.limit {
			return
		}
		_ = conn.Close()
		if c.full.CompareAndSwap(false, true) {
			c.log.Info("Too many connections; new ones are closed", "limit", c.limit)
		}
	case http.StateClosed, http.StateHijacked:
		if c.open.Add(-1) < c.limit/2 && c.full.CompareAndSwap(true, false) {
			c.log.Info("Connections are accepted again")
		}
	case http.StateActive, http.StateIdle:
	}
}

// errorLog turns the lines of the HTTP server into structured ones. They are about
// what callers did, failed TLS handshakes above all, and anyone can cause any
// number of them.
type errorLog struct{ log logr.Logger }

func (l errorLog) Write(line []byte) (int, error) {
	l.log.V(1).Info("HTTP server", "error", string(bytes.TrimSpace(line)))
	return len(line), nil
}
