package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"

	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

// countingListener counts what its connections write.
type countingListener struct {
	net.Listener
	writes atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &countingConn{Conn: conn, writes: &l.writes}, err
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// serveGathered serves over TLS as the listener does, and returns the address.
func serveGathered(t *testing.T, handler http.Handler) (*countingListener, string) {
	t.Helper()
	dir := serverConfig(t).CertDir
	mountCertificate(t, dir, 1)
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := &countingListener{Listener: inner}
	server := newHTTPServer(t.Context(), handler, &tls.Config{}, logr.Discard())
	var serving sync.WaitGroup
	serving.Go(func() {
		_ = server.ServeTLS(gatheringListener{listener}, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	})
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return listener, "https://" + inner.Addr().String()
}

// An answer of any size leaves in one piece, also the first ones of a connection, for
// which TLS makes small records; and each connection gets its own.
func TestAnswerLeavesAtOnce(t *testing.T) {
	var listener *countingListener
	var before atomic.Int64
	listener, url := serveGathered(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.Atoi(r.URL.Query().Get("size"))
		if err != nil {
			t.Error(err)
		}
		body := bytes.Repeat([]byte{byte('a' + size%26)}, size)
		w.Header().Set("Content-Length", strconv.Itoa(size))
		before.Store(listener.writes.Load())
		if err := writeAtOnce(w, r, body); err != nil {
			t.Error(err)
		}
		if got := listener.writes.Load() - before.Load(); got != 1 && r.URL.Query().Get("alone") != "" {
			t.Errorf("%d bytes took %d writes", size, got)
		}
	}))
	client := func() *http.Client {
		// One connection: the handshake of a second one, which a client may begin before the
		// first is free again, would be counted as writes of the answer.
		return &http.Client{Timeout: reviewtest.Timeout, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxConnsPerHost: 1,
		}}
	}
	one := client()
	for _, size := range []int{1, 4000, 5000, 10_000, 100_000} {
		get(t, one, fmt.Sprintf("%s?size=%d&alone=yes", url, size), size)
	}
	one.CloseIdleConnections()
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			c := client()
			defer c.CloseIdleConnections()
			for j := range 50 {
				size := 3000 + 1000*i + 7*j
				get(t, c, fmt.Sprintf("%s?size=%d", url, size), size)
			}
		})
	}
	callers.Wait()
}

// get checks that the answer is one letter, so many times.
func get(t *testing.T, client *http.Client, url string, size int) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return
	}
	response, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Equal(body, bytes.Repeat([]byte{byte('a' + size%26)}, size)) {
		t.Errorf("%d bytes of %d, error %v", len(body), size, err)
	}
}

// cutConn fails in the middle of a write.
type cutConn struct{ net.Conn }

func (c cutConn) Write(b []byte) (int, error) {
	n, _ := c.Conn.Write(b[:len(b)/2])
	return n, io.ErrShortWrite
}

// After half an answer nothing can be read of a connection any more, so it ends.
func TestHalfAnAnswerEndsTheConnection(t *testing.T) {
	near, far := net.Pipe()
	conn := &gatheringConn{Conn: cutConn{near}}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, far) }) // until the connection ends
	conn.gather()
	if _, err := conn.Write([]byte("an answer")); err != nil {
		t.Error(err)
	}
	if err := conn.send(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v", err)
	}
	reading.Wait()
}

// failingWriter is a ResponseWriter that fails in the worst way.
type failingWriter struct{ http.ResponseWriter }

func (failingWriter) Write([]byte) (int, error) { panic("a bug") }

// A connection does not hold back for ever what it is given.
func TestPanicDoesNotHoldAnswers(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	conn := &gatheringConn{Conn: near}
	var reading sync.WaitGroup
	defer reading.Wait()
	defer near.Close()
	reading.Go(func() { _, _ = io.Copy(io.Discard, far) })
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), connKey{}, conn), http.MethodPost, "/", nil)
	func() {
		defer func() { _ = recover() }()
		_ = writeAtOnce(failingWriter{httptest.NewRecorder()}, r, []byte("body"))
	}()
	if conn.held != nil {
		t.Error("what is written is still held back")
	}
}
