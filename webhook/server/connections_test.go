package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

// startServing starts a listener with that handler on the webhook's path.
func startServing(t *testing.T, handler http.Handler, log logr.Logger) *runningListener {
	t.Helper()
	cfg := serverConfig(t)
	mountCertificate(t, cfg.CertDir, 1)
	l := startListener(t, cfg, handler, log)
	l.waitReady(t)
	return l
}

// The client is always the first to give up a connection without a request,
// whether it was used before or not.
func TestKeepAliveOutlastsTheClients(t *testing.T) {
	server := newHTTPServer(t.Context(), http.NotFoundHandler(), &tls.Config{}, logr.Discard())
	// What client-go, and so the API server, does to every transport.
	client := utilnet.SetTransportDefaults(&http.Transport{}).IdleConnTimeout
	if client <= 0 {
		t.Fatal("clients keep idle connections for ever")
	}
	for name, timeout := range map[string]time.Duration{
		"idle": server.IdleTimeout, "header": server.ReadHeaderTimeout, "read": server.ReadTimeout,
	} {
		if timeout < client+10*time.Second {
			t.Errorf("%s timeout %s, the client's %s", name, timeout, client)
		}
	}
	if server.WriteTimeout <= 0 || server.MaxHeaderBytes <= 0 || server.ErrorLog == nil {
		t.Errorf("not every limit is set: %+v", server)
	}
}

// A caller gets HTTP/1, whatever it can do.
func TestListenerSpeaksHTTP1(t *testing.T) {
	l := startServing(t, http.NotFoundHandler(), logr.Discard())
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}}
	conn, err := dialer.DialContext(t.Context(), "tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("protocol %q", got)
	}
	dialer.Config.NextProtos = []string{"h2"}
	if other, err := dialer.DialContext(t.Context(), "tcp", l.address); err == nil {
		other.Close()
		t.Error("a caller that only speaks HTTP/2 is served")
	}
}

func TestListenerBoundsHeaders(t *testing.T) {
	l := startServing(t, http.NotFoundHandler(), logr.Discard())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for size, want := range map[int]int{maxHeaderBytes / 2: http.StatusNotFound, 2 * maxHeaderBytes: http.StatusRequestHeaderFieldsTooLarge} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+l.address+config.WebhookPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Long", strings.Repeat("x", size))
		response, err := client.Do(request)
		if err != nil {
			t.Fatalf("header of %d bytes: %v", size, err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("header of %d bytes: %s, want %d", size, response.Status, want)
		}
	}
}

// What callers do wrong is logged in structure, and only on the level Debug: they
// could fill the log.
func TestListenerLogsHandshakeErrors(t *testing.T) {
	type entry struct {
		level int
		args  string
	}
	entries := make(chan entry, 100)
	log := funcr.New(func(_, args string) {
		level := -1
		_, after, _ := strings.Cut(args, `"level"=`)
		_, _ = fmt.Sscanf(after, "%d", &level)
		entries <- entry{level, args}
	}, funcr.Options{Verbosity: 1})
	l := startServing(t, http.NotFoundHandler(), log)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "not TLS at all\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case got := <-entries:
			if !strings.Contains(got.args, "TLS handshake error") {
				continue
			}
			if got.level != 1 || !strings.Contains(got.args, `"msg"="HTTP server"`) {
				t.Errorf("level %d: %s", got.level, got.args)
			}
			return
		case <-time.After(reviewtest.Timeout):
			t.Fatal("the handshake error was not logged")
		}
	}
}

// closeCounter is a connection that counts how often it was closed.
type closeCounter struct {
	net.Conn
	closed int
}

func (c *closeCounter) Close() error { c.closed++; return nil }

func TestConnectionLimit(t *testing.T) {
	lines := &reviewtest.Log{}
	limit := &connectionLimit{limit: maxConnections, log: lines.Logger()}
	conn := &closeCounter{}
	open := func() { limit.observe(conn, http.StateNew) }
	for range maxConnections {
		open()
	}
	if conn.closed != 0 || lines.Text() != "" {
		t.Fatalf("%d closed within the limit; log %q", conn.closed, lines.Text())
	}
	for range 3 {
		open()
		limit.observe(conn, http.StateClosed) // as the server says then
	}
	if conn.closed != 3 || strings.Count(lines.Text(), "Too many connections") != 1 {
		t.Errorf("%d of 3 closed above the limit; log %q", conn.closed, lines.Text())
	}
	for range maxConnections {
		limit.observe(conn, http.StateActive)
		limit.observe(conn, http.StateIdle)
		limit.observe(conn, http.StateClosed)
	}
	if limit.open.Load() != 0 || strings.Count(lines.Text(), "accepted again") != 1 {
		t.Errorf("%d open at the end; log %q", limit.open.Load(), lines.Text())
	}
}

// What the limit of connections makes of memory: connectionBytes each, both ends
// of the connection included here.
func TestConnectionMemory(t *testing.T) {
	l := startServing(t, http.NotFoundHandler(), logr.Discard())
	const connections = 200
	before := memoryInUse()
	for range connections {
		if _, err := l.dial(t, 0); err != nil {
			t.Fatal(err)
		}
	}
	each := (memoryInUse() - before) / connections
	t.Logf("%d bytes for both ends of a connection, so up to %d MiB for the server's of %d", each, each*maxConnections/2>>20, maxConnections)
	if each > 2*connectionBytes {
		t.Errorf("both ends of a connection take %d bytes, more than twice %d", each, connectionBytes)
	}
}

// memoryInUse is what live objects and stacks occupy.
func memoryInUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// Requests over kept-alive connections do not fail when the server ends: each
// connection has an answer that says it is the last. New connections go to other
// replicas by then, since the Service has left this one out for seconds.
func TestListenerEndsInOrder(t *testing.T) {
	l := startServing(t, newBed(allowing{}, 100, time.Second), logr.Discard())
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	client := &http.Client{Transport: transport, Timeout: reviewtest.Timeout}
	var answered atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for last := false; !last; answered.Add(1) {
				var err error
				if last, err = postReview(t.Context(), client, "https://"+l.address+config.WebhookPath); err != nil {
					t.Errorf("a request failed: %v", err)
					return
				}
			}
		})
	}
	reviewtest.WaitUntil(t, "requests flow", func() bool { return answered.Load() > 100 })
	l.stopped(t)
	callers.Wait()
}

// postReview posts a review and returns whether the answer is the connection's
// last. The body cannot be sent again: the transport would hide a failure.
func postReview(ctx context.Context, client *http.Client, url string) (last bool, err error) {
	body := struct{ io.Reader }{strings.NewReader(reviewtest.Review(reviewtest.Pod))}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return false, err
	}
	if response.StatusCode != http.StatusOK {
		return false, errors.New(response.Status)
	}
	return response.Close, nil
}
