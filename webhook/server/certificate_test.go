package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

// mountCertificate puts a new self-signed certificate with that serial number
// into a folder as the kubelet mounts a Secret: the files are symbolic links
// through ..data, which is swapped as a whole, and the old version is removed.
func mountCertificate(t *testing.T, dir string, serial int64) {
	t.Helper()
	version := fmt.Sprintf("..version-%d", serial)
	if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
		t.Fatal(err)
	}
	certificate, key := newCertificate(t, serial)
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, version, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	current := filepath.Join(dir, "..data")
	old, readErr := os.Readlink(current)
	if err := os.Symlink(version, current+"_tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(current+"_tmp", current); err != nil {
		t.Fatal(err)
	}
	if readErr == nil {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// newCertificate returns certificate and key in PEM.
func newCertificate(t *testing.T, serial int64) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: "localhost"},
		DNSNames:     []string{"localhost"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Duration(serial) * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	privateDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: privateDER})
}

// serves is the serial number of the certificate that is served.
func (c *certificate) serves() int64 { return c.current.Load().Leaf.SerialNumber.Int64() }

// following mounts certificate 1 and follows its changes until the test ends.
func following(t *testing.T, dir string, log logr.Logger, watch func(string) (*fsnotify.Watcher, error), interval time.Duration) *certificate {
	t.Helper()
	mountCertificate(t, dir, 1)
	c, err := loadCertificate(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { c.follow(ctx, watch, interval) })
	t.Cleanup(func() { cancel(); ended.Wait() })
	return c
}

// noWatch is what a node without a free inotify instance answers.
func noWatch(string) (*fsnotify.Watcher, error) {
	return nil, os.NewSyscallError("inotify_init1", syscall.EMFILE)
}

// A change is served by report alone, by interval alone where nothing can be watched, and
// what cannot be read changes nothing.
func TestCertificateIsReloaded(t *testing.T) {
	for name, tc := range map[string]struct {
		watch    func(string) (*fsnotify.Watcher, error)
		interval time.Duration
	}{
		"by report":               {watchFolder, time.Hour},
		"without inotify":         {noWatch, 5 * time.Millisecond},
		"the folder is not there": {func(string) (*fsnotify.Watcher, error) { return watchFolder("/nowhere") }, 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			dir, lines := t.TempDir(), make(chan string, 1000)
			watching := make(chan struct{})
			watch := func(folder string) (*fsnotify.Watcher, error) {
				defer close(watching)
				return tc.watch(folder)
			}
			c := following(t, dir, funcr.New(func(_, args string) { lines <- args }, funcr.Options{}), watch, tc.interval)
			<-watching // what changes before is not reported
			if tc.interval < time.Hour {
				if line := <-lines; !strings.Contains(line, "at intervals only") {
					t.Errorf("log line %s", line)
				}
			}
			for serial := int64(2); serial <= 3; serial++ {
				mountCertificate(t, dir, serial)
				reviewtest.WaitUntil(t, fmt.Sprintf("certificate %d is served", serial), func() bool { return c.serves() == serial })
			}
			version := filepath.Join(dir, "..version-3", "tls.crt")
			if err := os.WriteFile(version, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.load(); err == nil || c.serves() != 3 {
				t.Errorf("error %v with a broken file, certificate %d is served", err, c.serves())
			}
		})
	}
}
