package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// certReload is how often the certificate is read again even if no change is reported. A
// report can fail to come: the kernel bounds how many watches a user may have
// (fs.inotify.max_user_instances, 128 by default), and all containers of a node whose
// processes have the same user share that bound. cert-manager renews long before a
// certificate ends, so ten seconds are early enough, and cost a tenth of a millisecond.
const certReload = 10 * time.Second

// certificate is the certificate that is served, with its key. Whatever becomes of its
// files, the last one that could be read is served.
type certificate struct {
	chainFile, keyFile string
	log                logr.Logger
	current            atomic.Pointer[tls.Certificate]
}

// loadCertificate reads a certificate. The error is about files that are not there or do
// not fit each other.
func loadCertificate(chainFile, keyFile string, log logr.Logger) (*certificate, error) {
	c := &certificate{chainFile: chainFile, keyFile: keyFile, log: log}
	return c, c.load()
}

// load reads the files.
func (c *certificate) load() error {
	loaded, err := tls.LoadX509KeyPair(c.chainFile, c.keyFile)
	if err != nil {
		return err
	}
	current := c.current.Load()
	if current != nil && slices.EqualFunc(current.Certificate, loaded.Certificate, bytes.Equal) {
		return nil // with the same key, which fits the certificate
	}
	c.current.Store(&loaded)
	if current != nil {
		c.log.Info("Serving a new certificate", "notAfter", loaded.Leaf.NotAfter)
	}
	return nil
}

// get is tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

// expiry is when the certificate that is served expires.
func (c *certificate) expiry() time.Time { return c.current.Load().Leaf.NotAfter }

// follow reads the files again when watch reports a change, and at every interval, until
// the context ends. Where nothing can be watched, it goes by the interval alone.
func (c *certificate) follow(ctx context.Context, watch func(folder string) (*fsnotify.Watcher, error), interval time.Duration) {
	var changes <-chan fsnotify.Event // of nil nothing ever comes
	var failures <-chan error
	if watcher, err := watch(filepath.Dir(c.chainFile)); err != nil {
		c.log.Info("Changes of the certificate are not reported, so it is read at intervals only", "interval", interval.String(), "because", err.Error())
	} else {
		defer func() { _ = watcher.Close() }()
		changes, failures = watcher.Events, watcher.Errors
		_ = c.load() // of a change before the watch began there is no report
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			// One file may be ahead of the other. The next report, or the ticker, has both.
			_ = c.load()
		case err := <-failures: // reports were lost, for which the ticker makes up
			c.log.V(1).Info("Changes of the certificate were not reported", "because", err.Error())
		case <-ticker.C:
			if err := c.load(); err != nil {
				c.log.Error(err, "The certificate cannot be read, so the one before stays")
			}
		}
	}
}

// watchFolder reports changes in a folder. The kubelet changes a mounted Secret by a
// symbolic link in its folder, so files themselves need no watch.
func watchFolder(folder string) (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("making a watch: %w", err)
	}
	if err := watcher.Add(folder); err != nil {
		_ = watcher.Close()
		return nil, fmt.Errorf("watching %s: %w", folder, err)
	}
	return watcher, nil
}
