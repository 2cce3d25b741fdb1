package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const (
	// certPoll is how often a missing certificate is looked for. cert-manager issues
	// within seconds; a second adds little to that.
	certPoll = time.Second
	// drainTime is how long connections are ended only together with an answer. A
	// connection that is used at least so often is then never closed under a request.
	drainTime = time.Second
	// shutdownTime is how long the end waits for requests under way: those get an
	// answer within the decision timeout, a second at most, and the server counts a
	// connection that never had a request as one for 5 seconds. Together with
	// drainTime and the Deployment's preStop it is below the grace period of 30 s.
	shutdownTime = 10 * time.Second
)

// Listener runs the HTTPS server as soon as there is a certificate. A start
// before cert-manager has issued one is normal, and not a crash. It is a manager.Runnable,
// to be started once; the other exported methods are safe for parallel use.
type Listener struct {
	cfg     config.Server
	handler http.Handler
	log     logr.Logger
	// serving is set while requests are accepted, draining once the end has begun.
	serving, draining atomic.Bool
	// certificate is the one that is served, nil before there is one.
	certificate atomic.Pointer[certificate]
	// reachable remembers whether the port was reached.
	reachable remembered
}

// NewListener returns the HTTPS server with the handler on its path.
//
// The server is our own, since controller-runtime's closes idle connections when
// the API server may still use them, and its limits cannot be set. Registering the
// handler with it keeps its metrics of HTTP requests.
func NewListener(cfg config.Server, handler http.Handler, log logr.Logger) *Listener {
	mux := http.NewServeMux()
	ctrlwebhook.NewServer(ctrlwebhook.Options{WebhookMux: mux}).Register(config.WebhookPath, handler)
	return &Listener{cfg: cfg, handler: mux, log: log}
}

// Start waits for the certificate, then serves until the context ends. It returns nil then,
// and an error when the certificate cannot be read or the port cannot be opened or served.
func (l *Listener) Start(ctx context.Context) error {
	err := l.waitForCertificate(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for the certificate: %w", err)
	}
	return l.serve(ctx)
}

// CertificateExpiry returns when the certificate that is served now expires, zero
// while there is none.
func (l *Listener) CertificateExpiry() time.Time {
	if served := l.certificate.Load(); served != nil {
		return served.expiry()
	}
	return time.Time{}
}

func (l *Listener) waitForCertificate(ctx context.Context) error {
	waited := false
	return wait.PollUntilContextCancel(ctx, certPoll, true, func(context.Context) (bool, error) {
		err := l.certificatePresent()
		if errors.Is(err, fs.ErrNotExist) {
			if !waited {
				l.log.Info("Waiting for the certificate; is cert-manager running and the Certificate Ready?", "certDir", l.cfg.CertDir)
				waited = true
			}
			return false, nil
		}
		return err == nil, err
	})
}

func (l *Listener) certificatePresent() error {
	for _, path := range []string{l.certificateFile(), l.keyFile()} {
		if _, err := os.Stat(path); err != nil {
			return err
		}
	}
	return nil
}

func (l *Listener) certificateFile() string { return filepath.Join(l.cfg.CertDir, "tls.crt") }
func (l *Listener) keyFile() string         { return filepath.Join(l.cfg.CertDir, "tls.key") }

// serve serves until the context ends, then ends in order.
func (l *Listener) serve(ctx context.Context) error {
	served, err := loadCertificate(l.certificateFile(), l.keyFile(), l.log)
	if err != nil {
		return fmt.Errorf("loading the certificate: %w", err)
	}
	l.certificate.Store(served)
	tlsConfig, err := l.tlsConfig(served)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(l.cfg.WebhookPort)))
	if err != nil {
		return fmt.Errorf("opening the webhook's port: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	background.Go(func() { served.follow(ctx, watchFolder, certReload) })
	// Requests under way outlive ctx: they are answered.
	server := newHTTPServer(context.WithoutCancel(ctx), http.HandlerFunc(l.serveHTTP), tlsConfig, l.log)
	ended := make(chan error, 1)
	background.Go(func() { ended <- server.ServeTLS(gatheringListener{listener}, "", "") })
	l.log.Info("Serving", "port", l.cfg.WebhookPort, "clientCertificates", l.cfg.ClientCAFile != "")
	l.serving.Store(true)
	defer l.serving.Store(false)
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	return l.end(ctx, server)
}

// serveHTTP hands a request on. Once the end has begun, the answer also ends the
// connection, which the API server then knows before it sends the next request.
func (l *Listener) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if l.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	l.handler.ServeHTTP(w, r)
}

// end lets connections end with their next answer, then closes the idle ones and
// waits for requests under way.
func (l *Listener) end(ctx context.Context, server *http.Server) error {
	l.draining.Store(true)
	drained := time.NewTimer(drainTime)
	defer drained.Stop()
	<-drained.C
	// ctx has ended; what is under way gets its time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		l.log.Info("Connections did not end in time and were closed", "after", shutdownTime.String())
		return server.Close()
	}
	return nil
}

// NeedLeaderElection is false: every replica serves.
func (*Listener) NeedLeaderElection() bool { return false }
