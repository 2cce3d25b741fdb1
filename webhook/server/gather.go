package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
)

// An answer takes more than the 4 KiB that package net/http writes at once, so it would
// leave in two parts, and the caller, woken by the first, would have to be woken again.
// Connections of a gatheringListener send it as one.

// gatheringListener is a listener whose connections can hold back what is written.
type gatheringListener struct{ net.Listener }

// Accept waits for the next connection.
func (l gatheringListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatheringConn{Conn: conn}, nil
}

// gatheringConn is the connection under TLS.
type gatheringConn struct {
	net.Conn

	// mu is held while something is written, so that nothing comes in between.
	mu sync.Mutex
	// held is what was written since gather; nil: nothing is held back.
	held *bytes.Buffer
}

// connKey is the key of the connection in the context of its requests.
type connKey struct{}

// withConn is the server's ConnContext: requests know their connection.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		if c, ok := secure.NetConn().(*gatheringConn); ok {
			return context.WithValue(ctx, connKey{}, c)
		}
	}
	return ctx
}

// Write writes, or holds back what is to be written.
func (c *gatheringConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		return c.held.Write(b)
	}
	return c.Conn.Write(b)
}

// gather holds back what is written from now on.
func (c *gatheringConn) gather() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = takeBuffer()
}

// send writes what was held back. If it cannot, the connection ends: TLS and the HTTP
// server take it for written.
func (c *gatheringConn) send() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.held
	c.held = nil
	defer giveBuffer(held)
	if _, err := c.Conn.Write(held.Bytes()); err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

// writeAtOnce writes the body of an answer, with its header, in one piece where the
// connection can do that.
func writeAtOnce(w http.ResponseWriter, r *http.Request, body []byte) (err error) {
	conn, ok := r.Context().Value(connKey{}).(*gatheringConn)
	if !ok {
		_, err := w.Write(body)
		return err
	}
	conn.gather()
	defer func() { // whatever happens, or nothing would ever be sent again
		if sent := conn.send(); err == nil {
			err = sent
		}
	}()
	if _, err := w.Write(body); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
