package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/go-logr/logr"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// tlsOptions sets what all our HTTPS endpoints have in common: the oldest version
// and HTTP/1 only.
func tlsOptions(cfg config.Server) func(*tls.Config) {
	return func(c *tls.Config) {
		c.NextProtos = []string{"http/1.1"}
		c.MinVersion = tls.VersionTLS13
		if cfg.MinTLSVersion == "1.2" {
			// With Go's choice of cipher suites: all with forward secrecy.
			c.MinVersion = tls.VersionTLS12
		}
	}
}

// tlsConfig returns that of the webhook's port.
func (l *Listener) tlsConfig(served *certificate) (*tls.Config, error) {
	c := &tls.Config{GetCertificate: served.get}
	tlsOptions(l.cfg)(c)
	if l.cfg.ClientCAFile == "" {
		return c, nil
	}
	clients := &clientCAs{path: l.cfg.ClientCAFile, log: l.log}
	if err := clients.read(); err != nil {
		return nil, fmt.Errorf("reading server.clientCAFile: %w", err)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.VerifyConnection = verifyNames(l.cfg.ClientNames)
	// A resumed connection would rest on an earlier verification.
	c.SessionTicketsDisabled = true
	verified := c.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := verified.Clone()
		current.ClientCAs = clients.current()
		return current, nil
	}
	return c, nil
}

// clientCAs are the certificates of a file, as it is now.
type clientCAs struct {
	path string
	log  logr.Logger

	mu     sync.Mutex // guards what follows
	data   []byte
	pool   *x509.CertPool
	failed bool // the last reading
}

// current returns the certificates. A file that cannot be used, while it is being
// replaced or for longer, changes nothing.
func (c *clientCAs) current() *x509.CertPool {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.read()
	if err != nil && !c.failed {
		c.log.Error(err, "The client CA file cannot be used; its earlier content is")
	}
	c.failed = err != nil
	return c.pool
}

// read reads the file. Call it under the lock.
func (c *clientCAs) read() error {
	data, err := os.ReadFile(c.path)
	if err != nil {
		return err
	}
	if c.pool != nil && bytes.Equal(data, c.data) {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return fmt.Errorf("no certificate in %s", c.path)
	}
	c.data, c.pool = data, pool
	return nil
}

// verifyNames requires the caller's certificate, which is verified by then, to
// have one of the names; any will do if there are none.
func verifyNames(names []string) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if len(names) == 0 {
			return nil
		}
		if len(state.PeerCertificates) == 0 {
			return errors.New("no client certificate")
		}
		certificate := state.PeerCertificates[0]
		own := append([]string{certificate.Subject.CommonName}, certificate.DNSNames...)
		for _, uri := range certificate.URIs {
			own = append(own, uri.String())
		}
		if slices.ContainsFunc(own, func(name string) bool { return slices.Contains(names, name) }) {
			return nil
		}
		return fmt.Errorf("client certificate of %q, which is none of the clientNames", certificate.Subject.CommonName)
	}
}
