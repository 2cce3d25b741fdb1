package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

// startPort runs a server until the test ends and returns its address.
func startPort(t *testing.T, server *manager.Server, err error) string {
	t.Helper()
	ctrllog.SetLogger(logr.Discard()) // for controller-runtime's own lines
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	return server.Listener.Addr().String()
}

// startHealth serves health probes that one check decides about.
func startHealth(t *testing.T, check healthz.Checker) string {
	t.Helper()
	server, err := NewHealthPort(config.Server{HealthAddress: "127.0.0.1:0"}, map[string]healthz.Checker{"check": check}, logr.Discard())
	return startPort(t, server, err)
}

// probe is a GET as the kubelet sends it: on a connection of its own, within a second.
func probe(t *testing.T, url string, header ...string) (status int, body string) {
	t.Helper()
	client := &http.Client{
		Timeout:   time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range header {
		request.Header.Add("X-Test", value)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestHealthServer(t *testing.T) {
	var failing atomic.Bool
	address := startHealth(t, func(*http.Request) error {
		if failing.Load() {
			return errors.New("not now")
		}
		return nil
	})
	for _, down := range []bool{false, true} {
		failing.Store(down)
		want := map[string]int{"/healthz": 200, "/readyz": 200, "/readyz/check": 200, "/healthz/ping": 200, "/other": 404}
		if down {
			want["/readyz"], want["/readyz/check"] = 500, 500
		}
		for path, status := range want {
			if got, body := probe(t, "http://"+address+path); got != status {
				t.Errorf("failing %v: %s has status %d, want %d: %s", down, path, got, status, body)
			}
		}
	}
	off := config.Server{HealthAddress: "0", MetricsAddress: "0"}
	if server, err := NewHealthPort(off, nil, logr.Discard()); server != nil || err != nil {
		t.Errorf("a server for address 0: %v, %v", server, err)
	}
	if server, err := NewMetricsPort(off, nil, nil, logr.Discard()); server != nil || err != nil {
		t.Errorf("a server for address 0: %v, %v", server, err)
	}
}

// What a kubelet sends is far below the limit of headers, and more than that is refused.
func TestHealthServerBoundsHeaders(t *testing.T) {
	address := startHealth(t, healthz.Ping)
	if status, _ := probe(t, "http://"+address+"/readyz", strings.Repeat("x", 500)); status != http.StatusOK {
		t.Errorf("status %d for a header as those of probes", status)
	}
	// The server adds 4 KiB to its limit.
	if status, _ := probe(t, "http://"+address+"/readyz", strings.Repeat("x", healthLimits.headerBytes+8<<10)); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d for a long header", status)
	}
}

// Somebody who opens connections and sends nothing, or half a header, keeps nobody out,
// and has none for long.
func TestHealthServerUnderAttack(t *testing.T) {
	address := startHealth(t, healthz.Ping)
	var held []net.Conn
	for i := range 4 * healthLimits.connections {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		held = append(held, conn)
		if i%2 == 0 {
			_, _ = io.WriteString(conn, "GET /readyz HTTP/1.1\r\nX: ") // may be closed already
		}
		if i%16 == 0 {
			if status, _ := probe(t, "http://"+address+"/readyz"); status != http.StatusOK {
				t.Errorf("status %d beside %d other connections", status, i)
			}
		}
	}
	for _, conn := range held { // the server ends all of them
		if err := conn.SetReadDeadline(time.Now().Add(reviewtest.Timeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			t.Fatal("a connection without a request stays open")
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestNewestConnections(t *testing.T) {
	connections := &newestConnections{limit: 3}
	all := make([]*closeCounter, 5)
	for i := range all {
		all[i] = &closeCounter{}
		connections.observe(all[i], http.StateNew)
		connections.observe(all[i], http.StateActive)
	}
	for i, conn := range all {
		if closed := conn.closed > 0; closed != (i < 2) {
			t.Errorf("connection %d was closed: %v", i, closed)
		}
	}
	// As the server says of those that were closed, and of one that ended by itself.
	for _, i := range []int{0, 1, 3} {
		connections.observe(all[i], http.StateClosed)
	}
	another := &closeCounter{}
	connections.observe(another, http.StateNew)
	if all[2].closed+all[4].closed+another.closed != 0 || len(connections.open) != 3 {
		t.Errorf("%d are open", len(connections.open))
	}
}

// The port for metrics has its limits, over HTTPS and without.
func TestMetricsServer(t *testing.T) {
	cfg := config.Default().Server
	cfg.MetricsAddress = "127.0.0.1:0"
	server, err := NewMetricsPort(cfg, &rest.Config{Host: "127.0.0.1:1"}, http.DefaultClient, logr.Discard())
	secure := startPort(t, server, err)
	if status, body := probe(t, "https://"+secure+"/metrics"); status != http.StatusUnauthorized {
		t.Errorf("status %d without a token: %s", status, body)
	}
	if status, _ := probe(t, "https://"+secure+"/metrics", strings.Repeat("x", maxHeaderBytes+8<<10)); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d for a long header", status)
	}
	cfg.MetricsInsecure = true
	server, err = NewMetricsPort(cfg, nil, nil, logr.Discard())
	insecure := startPort(t, server, err)
	if status, body := probe(t, "http://"+insecure+"/metrics"); status != http.StatusOK || !strings.Contains(body, "certwatcher_read_certificate_total") {
		t.Errorf("status %d: %.200s", status, body)
	}
	if status, _ := probe(t, "http://"+insecure+"/other"); status != http.StatusNotFound {
		t.Errorf("status %d for another path", status)
	}
	if s := server.Server; s.MaxHeaderBytes <= 0 || s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 || s.ErrorLog == nil || s.ConnState == nil {
		t.Errorf("not every limit is set: %+v", s)
	}
}

// Any number of probes makes one handshake with the webhook's port in a second.
func TestReadinessIsRemembered(t *testing.T) {
	var checks atomic.Int64
	failure := errors.New("failure")
	check := func() error { checks.Add(1); return failure }
	r := &remembered{}
	var asking sync.WaitGroup
	for range 100 {
		asking.Go(func() {
			if err := r.ask(check); !errors.Is(err, failure) {
				t.Errorf("result %v", err)
			}
		})
	}
	asking.Wait()
	if got := checks.Load(); got != 1 {
		t.Errorf("%d checks at once", got)
	}
	r.at = r.at.Add(-readyMemory)
	failure = nil
	if err := r.ask(check); err != nil || checks.Load() != 2 {
		t.Errorf("a second later: %v after %d checks", err, checks.Load())
	}
	// The listener's probe goes by it, but not beyond the end of serving.
	l := startServing(t, http.NotFoundHandler(), logr.Discard())
	l.reachable.mu.Lock()
	l.reachable.at, l.reachable.err = time.Now().Add(time.Hour), errors.New("remembered")
	l.reachable.mu.Unlock()
	if err := l.Ready(nil); err == nil || err.Error() != "remembered" {
		t.Errorf("the probe made a handshake of its own: %v", err)
	}
	l.stopped(t)
	if err := l.Ready(nil); err == nil || err.Error() == "remembered" {
		t.Errorf("ready after the end: %v", err)
	}
}
