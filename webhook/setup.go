package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// certPoll is how often a missing certificate is looked for. cert-manager issues
// within seconds; a second adds little to that.
const certPoll = time.Second

// Listener runs the HTTPS server as soon as there is a certificate. A start
// before cert-manager has issued one is normal, and not a crash.
type Listener struct {
	server  ctrlwebhook.Server
	certDir string
	log     logr.Logger
}

// NewListener returns the HTTPS server with the handler on its path.
func NewListener(cfg config.Server, handler http.Handler, log logr.Logger) *Listener {
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Port:    cfg.WebhookPort,
		CertDir: cfg.CertDir,
		TLSOpts: []func(*tls.Config){minVersion(cfg.MinTLSVersion)},
	})
	server.Register(config.WebhookPath, handler)
	return &Listener{server: server, certDir: cfg.CertDir, log: log}
}

func minVersion(v string) func(*tls.Config) {
	return func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS13
		if v == "1.2" {
			c.MinVersion = tls.VersionTLS12
		}
	}
}

// Start waits for the certificate, then serves until the context ends.
func (l *Listener) Start(ctx context.Context) error {
	waited := false
	err := wait.PollUntilContextCancel(ctx, certPoll, true, func(context.Context) (bool, error) {
		err := l.certificatePresent()
		if errors.Is(err, fs.ErrNotExist) {
			if !waited {
				l.log.Info("Waiting for the certificate; is cert-manager running and the Certificate Ready?", "certDir", l.certDir)
				waited = true
			}
			return false, nil
		}
		return err == nil, err
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for the certificate: %w", err)
	}
	return l.server.Start(ctx)
}

func (l *Listener) certificatePresent() error {
	for _, name := range []string{"tls.crt", "tls.key"} {
		if _, err := os.Stat(filepath.Join(l.certDir, name)); err != nil {
			return err
		}
	}
	return nil
}

// Ready is nil when the server accepts TLS connections.
func (l *Listener) Ready(r *http.Request) error { return l.server.StartedChecker()(r) }

// NeedLeaderElection is false: every replica serves.
func (*Listener) NeedLeaderElection() bool { return false }
