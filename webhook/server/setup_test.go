package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

// runningListener is a Listener under test.
type runningListener struct {
	*Listener
	address string
	stop    context.CancelFunc
	ended   chan error
}

// startListener starts a listener on a free port.
func startListener(t *testing.T, cfg config.Server, handler http.Handler, log logr.Logger) *runningListener {
	t.Helper()
	ctrllog.SetLogger(logr.Discard()) // for controller-runtime's own lines
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.WebhookPort = reserved.Addr().(*net.TCPAddr).Port
	if err := reserved.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	l := &runningListener{
		Listener: NewListener(cfg, handler, log),
		address:  fmt.Sprintf("127.0.0.1:%d", cfg.WebhookPort),
		stop:     stop,
		ended:    make(chan error, 1),
	}
	go func() { l.ended <- l.Start(ctx) }()
	t.Cleanup(stop)
	return l
}

// serverConfig is the default one, with certificates from a folder of the test.
func serverConfig(t *testing.T) config.Server {
	t.Helper()
	cfg := config.Default().Server
	cfg.CertDir = t.TempDir()
	return cfg
}

func (l *runningListener) waitReady(t *testing.T) {
	t.Helper()
	reviewtest.WaitUntil(t, "the listener is ready", func() bool { return l.Ready(nil) == nil })
}

// stopped stops the listener and waits for its end.
func (l *runningListener) stopped(t *testing.T) {
	t.Helper()
	l.stop()
	select {
	case err := <-l.ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(reviewtest.Timeout):
		t.Fatal("the listener does not end")
	}
}

// dial returns a TLS connection.
func (l *runningListener) dial(t *testing.T, maxVersion uint16) (*tls.Conn, error) {
	t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: maxVersion}}
	conn, err := dialer.DialContext(t.Context(), "tcp", l.address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*tls.Conn), nil
}

// patching is a handler that answers with a patch.
type patching struct{ allowing }

func (p patching) Handle(ctx context.Context, r admission.Request) admission.Response {
	response, jsonPatch := p.allowing.Handle(ctx, r), admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = []byte(`[]`), &jsonPatch
	return response
}

// A start before cert-manager issued the certificate is normal: the listener
// waits, says so once, and serves when the files are there.
func TestListenerWaitsForCertificate(t *testing.T) {
	cfg := serverConfig(t)
	waiting := make(chan string, 10)
	server := newBed(patching{}, 4, time.Second)
	l := startListener(t, cfg, server, funcr.New(func(_, args string) { waiting <- args }, funcr.Options{}))
	if text := <-waiting; !strings.Contains(text, "Waiting for the certificate") || !strings.Contains(text, cfg.CertDir) {
		t.Errorf("log line %s", text)
	}
	if err := l.Ready(nil); err == nil {
		t.Error("ready without a certificate")
	}
	if _, err := l.dial(t, 0); err == nil {
		t.Error("serves without a certificate")
	}
	mountCertificate(t, cfg.CertDir, 1)
	l.waitReady(t)
	for len(waiting) > 0 {
		if text := <-waiting; strings.Contains(text, "Waiting") {
			t.Errorf("logged again: %s", text)
		}
	}

	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport, Timeout: reviewtest.Timeout}
	response, err := client.Post("https://"+l.address+config.WebhookPath, "application/json", strings.NewReader(reviewtest.Review(reviewtest.Pod)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK || response.ProtoMajor != 1 || !bytes.Contains(body, []byte(`"allowed":true,"patch"`)) {
		t.Errorf("%s, %v: %s", response.Status, err, body)
	}
	response, err = client.Get("https://" + l.address + "/other")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("another path: %s", response.Status)
	}
	transport.CloseIdleConnections()

	l.stopped(t)
	if _, err := l.dial(t, 0); err == nil {
		t.Error("serves after the end")
	}
	reviewtest.WaitUntil(t, "no goroutine is left", func() bool { return !strings.Contains(goroutines(t), "controller-runtime/pkg/") })
}

// goroutines returns the stacks of all goroutines.
func goroutines(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestListenerEndsWhileWaiting(t *testing.T) {
	waiting := make(chan string, 10)
	l := startListener(t, serverConfig(t), http.NotFoundHandler(), funcr.New(func(_, args string) { waiting <- args }, funcr.Options{}))
	<-waiting
	l.stopped(t)
}

// What waiting cannot mend is an error at once.
func TestListenerRefusesBrokenCertificates(t *testing.T) {
	tests := map[string]func(t *testing.T, dir string) string{
		"the folder is a file": func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "file")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		},
		"no certificate in the files": func(t *testing.T, dir string) string {
			for _, name := range []string{"tls.crt", "tls.key"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			return dir
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := serverConfig(t)
			cfg.CertDir = prepare(t, cfg.CertDir)
			l := startListener(t, cfg, http.NotFoundHandler(), logr.Discard())
			select {
			case err := <-l.ended:
				if err == nil {
					t.Error("ended without an error")
				}
			case <-time.After(reviewtest.Timeout):
				t.Fatal("the listener neither serves nor ends")
			}
		})
	}
}

func TestListenerTLSVersions(t *testing.T) {
	tests := map[string]struct {
		min     string
		offered uint16
		want    uint16 // 0: refused
	}{
		"1.3 by default":        {min: config.Default().Server.MinTLSVersion, offered: tls.VersionTLS13, want: tls.VersionTLS13},
		"no 1.2 by default":     {min: config.Default().Server.MinTLSVersion, offered: tls.VersionTLS12},
		"1.2 when configured":   {min: "1.2", offered: tls.VersionTLS12, want: tls.VersionTLS12},
		"1.3 with 1.2 allowed":  {min: "1.2", offered: tls.VersionTLS13, want: tls.VersionTLS13},
		"no 1.1 when 1.2 is it": {min: "1.2", offered: tls.VersionTLS11},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := serverConfig(t)
			cfg.MinTLSVersion = tc.min
			mountCertificate(t, cfg.CertDir, 1)
			l := startListener(t, cfg, http.NotFoundHandler(), logr.Discard())
			l.waitReady(t)
			conn, err := l.dial(t, tc.offered)
			if (err == nil) != (tc.want != 0) {
				t.Fatalf("dialing: %v", err)
			}
			if err == nil {
				if got := conn.ConnectionState().Version; got != tc.want {
					t.Errorf("version %x, want %x", got, tc.want)
				}
				_ = conn.Close() // the end waits for connections without a request
			}
			l.stopped(t)
		})
	}
}

// A renewed certificate is served without a restart, and its end is known.
func TestListenerReloadsCertificate(t *testing.T) {
	cfg := serverConfig(t)
	if expiry := NewListener(cfg, http.NotFoundHandler(), logr.Discard()).CertificateExpiry(); !expiry.IsZero() {
		t.Errorf("a certificate that is not there expires at %v", expiry)
	}
	mountCertificate(t, cfg.CertDir, 1)
	l := startListener(t, cfg, http.NotFoundHandler(), logr.Discard())
	l.waitReady(t)
	for serial := int64(1); serial <= 3; serial++ {
		if serial > 1 {
			mountCertificate(t, cfg.CertDir, serial)
		}
		reviewtest.WaitUntil(t, fmt.Sprintf("certificate %d is served", serial), func() bool {
			conn, err := l.dial(t, 0)
			if err != nil {
				t.Fatalf("not served during a change of certificates: %v", err)
			}
			defer func() { _ = conn.Close() }()
			served := conn.ConnectionState().PeerCertificates[0]
			return served.SerialNumber.Int64() == serial && served.NotAfter.Equal(l.CertificateExpiry())
		})
	}
	l.stopped(t)
}

// A caller that sends its body too slowly is answered, and its slot is free
// again, within the time that the API server waits.
func TestListenerEndsSlowBodies(t *testing.T) {
	cfg := serverConfig(t)
	mountCertificate(t, cfg.CertDir, 1)
	server := newBed(allowing{}, 1, time.Second)
	l := startListener(t, cfg, server, logr.Discard())
	l.waitReady(t)
	conn, err := l.dial(t, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(reviewtest.Timeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", config.WebhookPath); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) {
		t.Errorf("answer %q, %v", answer, err)
	}
	if len(server.slots) != 0 {
		t.Error("the slot is still taken")
	}
	l.stopped(t)
}
