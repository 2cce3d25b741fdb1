package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// probeTimeout is how long the readiness probe waits for a TLS handshake, less
	// than the second that the kubelet waits for the probe.
	probeTimeout = 900 * time.Millisecond
	// readyMemory is how long the result of a handshake counts: far less than the 5 s between
	// two probes of the kubelet, and enough that probes by others, however many, take one of
	// the webhook's connections at most.
	readyMemory = time.Second
)

// Ready is nil when the server accepts TLS connections.
func (l *Listener) Ready(*http.Request) error {
	if !l.serving.Load() || l.draining.Load() {
		return errors.New("the webhook is not served")
	}
	return l.reachable.ask(l.reach)
}

// reach makes a TLS handshake with ourselves, about whether there is an answer; nothing is
// sent.
func (l *Listener) reach() error {
	dialer := &net.Dialer{Timeout: probeTimeout}
	conn, err := tls.DialWithDialer(dialer, "tcp", net.JoinHostPort("", strconv.Itoa(l.cfg.WebhookPort)), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return fmt.Errorf("reaching the webhook: %w", err)
	}
	return conn.Close()
}

// remembered is the result of a check that counts for a while. Who asks while it is being
// made waits for it.
type remembered struct {
	mu  sync.Mutex // guards what follows, and is held during a check
	at  time.Time
	err error
}

// ask returns the result of the check, or the one remembered.
func (r *remembered) ask(check func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= readyMemory {
		r.err = check()
		r.at = time.Now()
	}
	return r.err
}
