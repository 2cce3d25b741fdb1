package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// requestTimeout bounds one request; naive takes long in large clusters.
const requestTimeout = time.Minute

// connection is a connection that carries one request after the other, as those of
// the API server. It is written out here, since http.Client would take more CPU from
// the server: two goroutines per connection.
type connection struct {
	conn   net.Conn
	reader *bufio.Reader
	body   bytes.Buffer
}

func dial(ctx context.Context, port int, caFile string) (*connection, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("no certificate in %s", caFile)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("connecting to the webhook: %w", err)
	}
	return &connection{conn: conn, reader: bufio.NewReaderSize(conn, 16<<10)}, nil
}

func (c *connection) close() { c.conn.Close() }

// message is a request as it is written, with a place for its UID.
type message struct {
	bytes []byte
	uid   []byte // a part of bytes
}

// newMessage returns the request that carries a review, with the API server's headers.
func newMessage(review []byte) (*message, error) {
	header := fmt.Sprintf("POST %s?timeout=1s HTTP/1.1\r\nHost: gpu-binpacker.gpu-binpacker-system.svc:443\r\n"+
		"User-Agent: kube-apiserver-admission\r\nContent-Length: %d\r\nAccept: application/json, */*\r\n"+
		"Content-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n", config.WebhookPath, len(review))
	m := &message{bytes: append([]byte(header), review...)}
	at := bytes.Index(m.bytes, []byte(placeholder))
	if at < 0 || bytes.Count(m.bytes, []byte(placeholder)) > 1 {
		return nil, errors.New("the review does not have the placeholder once")
	}
	m.uid = m.bytes[at : at+len(placeholder)]
	return m, nil
}

// send sends a request and returns the body of the answer, which is valid until the
// next one.
func (c *connection) send(m *message) ([]byte, error) {
	if err := c.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(m.bytes); err != nil {
		return nil, fmt.Errorf("sending a review: %w", err)
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	defer response.Body.Close()
	c.body.Reset()
	if _, err := io.Copy(&c.body, response.Body); err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	if response.StatusCode != http.StatusOK || response.Close {
		return nil, fmt.Errorf("answer with status %s, connection closed: %v: %.300s", response.Status, response.Close, c.body.Bytes())
	}
	return c.body.Bytes(), nil
}
