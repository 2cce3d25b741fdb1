package attack

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/podstream"
)

const (
	// bodies is how many requests the webhook deals with at once
	// (server.maxConcurrentRequests), bodyBytes just below what it takes (maxBodyBytes in
	// webhook/server/http.go), and bodyElements the commas of which each stands for an element
	// of 1,200 bytes: with them a body of that size is just below what one may need
	// (maxMemory there).
	bodies, bodyBytes, bodyElements = 64, 4<<20 - 4096, 45_000
	// bodyInterval is from one volley of bodies to the next, bodyPause the pause in each
	// body before its end.
	bodyInterval, bodyPause = 4 * time.Second, 250 * time.Millisecond

	// headers is how many connections with a large header a replica's health port gets,
	// headerBytes just below what Go's server takes by default, 1 MiB.
	headers, headerBytes = 450, 1_000_000
	// healthIdle and webhookIdle are how many connections a replica's ports get that do
	// nothing. The webhook takes 2,000; with more its callers are turned away, as
	// docs/security.md says.
	healthIdle, webhookIdle = 2000, 1000
	// readyzPerSecond is per replica.
	readyzPerSecond = 400

	// returnInterval is when a connection comes back that was thrown out.
	returnInterval = 2 * time.Second
	// connectTimeout limits connecting and the TLS handshake.
	connectTimeout = 10 * time.Second
)

// connection is one that wants something of a port until the server or ctx ends it. It
// calls got when it has come as far as it wants.
type connection func(ctx context.Context, address string, got func()) error

// hold keeps count connections to an address, each of which comes back when it is thrown
// out, until ctx ends.
func hold(ctx context.Context, group *sync.WaitGroup, a *attacker, address string, count int, connect connection) {
	for range count {
		group.Go(func() {
			for {
				err := connect(ctx, address, func() { a.note(nil) })
				if err != nil && ctx.Err() == nil {
					a.note(err)
				}
				if !podstream.Pause(ctx, returnInterval) {
					return
				}
			}
		})
	}
}

// hugeHeaders sends headers to the health ports that are as large as Go takes them, and
// do not end.
func hugeHeaders(ctx context.Context, b *bed, a *attacker) error {
	var group sync.WaitGroup
	for _, replica := range b.installed.Replicas() {
		hold(ctx, &group, a, replica.HealthAddress(), headers, hugeHeader)
	}
	group.Wait()
	return nil
}

// hugeHeader counts from the first bytes on: a server that does not take more is what is
// wanted.
func hugeHeader(ctx context.Context, address string, got func()) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: x\r\n"); err != nil {
		return err
	}
	got()
	line := "X-Large: " + strings.Repeat("x", 4000) + "\r\n"
	for sent := 0; sent < headerBytes; sent += len(line) {
		if _, err := io.WriteString(conn, line); err != nil {
			return nil // it was thrown out, as it should be
		}
	}
	waitClosed(conn)
	return nil
}

// idleConnections opens connections to both ports that want nothing but to last.
func idleConnections(ctx context.Context, b *bed, a *attacker) error {
	var group sync.WaitGroup
	for _, replica := range b.installed.Replicas() {
		hold(ctx, &group, a, replica.HealthAddress(), healthIdle, func(ctx context.Context, address string, got func()) error {
			return idle(ctx, address, dial, got)
		})
		hold(ctx, &group, a, replica.WebhookAddress(), webhookIdle, func(ctx context.Context, address string, got func()) error {
			return idle(ctx, address, dialTLS, got)
		})
	}
	group.Wait()
	return nil
}

// idle connects and says nothing.
func idle(ctx context.Context, address string, dial func(context.Context, string) (net.Conn, error), got func()) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	got()
	waitClosed(conn)
	return nil
}

// waitClosed returns when the other side or ctx has ended the connection.
func waitClosed(conn net.Conn) {
	_, _ = io.Copy(io.Discard, conn)
}

// readyzHammered asks the health ports whether the replicas are ready, each time on a new
// connection.
func readyzHammered(ctx context.Context, b *bed, a *attacker) error {
	transport := &http.Transport{DisableKeepAlives: true}
	asker := &http.Client{Transport: transport, Timeout: probeTimeout}
	var group sync.WaitGroup
	for _, replica := range b.installed.Replicas() {
		group.Go(func() {
			atRate(ctx, readyzPerSecond, attackersInFlight, func(int) {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+replica.HealthAddress()+"/readyz", http.NoBody)
				if err != nil {
					a.note(err)
					return
				}
				response, err := asker.Do(request)
				if err == nil {
					response.Body.Close()
				}
				if ctx.Err() == nil {
					a.note(err)
				}
			})
		})
	}
	group.Wait()
	return nil
}

// slowBodies sends volleys of reviews that are as large as the webhook takes them, all at
// once, and each with a pause before its end.
func slowBodies(ctx context.Context, b *bed, a *attacker) error {
	body, err := largeReview()
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	defer group.Wait()
	for {
		for _, replica := range b.installed.Replicas() {
			for range bodies {
				group.Go(func() {
					err := slowBody(ctx, replica.WebhookAddress(), body)
					if ctx.Err() == nil {
						a.note(err)
					}
				})
			}
		}
		if !podstream.Pause(ctx, bodyInterval) {
			return nil
		}
	}
}

// slowBody posts a body and returns nil when there is an answer, or the server has given
// the body up.
func slowBody(ctx context.Context, address string, body []byte) error {
	conn, err := dialTLS(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		config.WebhookPath, len(body))
	most := len(body) * 9 / 10
	if _, err := conn.Write(append([]byte(head), body[:most]...)); err != nil || !podstream.Pause(ctx, bodyPause) {
		return nil
	}
	if _, err := conn.Write(body[most:]); err != nil {
		return nil
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return nil
}

// largeReview is a review of a pod with as many containers as fit, and with an
// annotation as large as fits.
func largeReview() ([]byte, error) {
	pod := []byte(`{"metadata":{"annotations":{"a":"` + strings.Repeat("x", bodyBytes-4*bodyElements-2000) +
		`"}},"spec":{"containers":[` + strings.Repeat("{},", bodyElements) + `{}]}}`)
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       uuid.NewUUID(),
			Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: victimsNamespace, Operation: admissionv1.Create, DryRun: ptr.To(true),
			Object: runtime.RawExtension{Raw: pod},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("writing a large review: %w", err)
	}
	if commas := bytes.Count(text, []byte{','}); len(text) > 4<<20 || 3*len(text)+1200*commas > 64<<20 {
		return nil, fmt.Errorf("the review has %d bytes and %d commas: the webhook refuses it at once", len(text), commas)
	}
	return text, nil
}

// dial connects; ctx ends the connection.
func dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: connectTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return conn, nil
}

// dialTLS connects and shakes hands; ctx ends the connection.
func dialTLS(ctx context.Context, address string) (net.Conn, error) {
	raw, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	handshake, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	// Whose certificate it is does not matter to the attack.
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	if err := conn.HandshakeContext(handshake); err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}
