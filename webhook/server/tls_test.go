package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

// clientCA signs client certificates.
type clientCA struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newClientCA(t *testing.T) *clientCA {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	pair := (&clientCA{}).sign(t, template)
	return &clientCA{certificate: pair.Leaf, key: pair.PrivateKey.(*ecdsa.PrivateKey)}
}

// sign makes a certificate of the template, signed by itself for an empty CA.
func (ca *clientCA) sign(t *testing.T, template *x509.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := ca.certificate, ca.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// client makes a client certificate, with changes to its template.
func (ca *clientCA) client(t *testing.T, name string, changes ...func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		KeyUsage: x509.KeyUsageDigitalSignature, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	for _, change := range changes {
		change(template)
	}
	return ca.sign(t, template)
}

// write writes the CA's certificate to a file, after those of others.
func (ca *clientCA) write(t *testing.T, path string, others ...*clientCA) {
	t.Helper()
	var bundle bytes.Buffer
	for _, each := range append(others, ca) {
		if err := pem.Encode(&bundle, &pem.Block{Type: "CERTIFICATE", Bytes: each.certificate.Raw}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, bundle.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// call posts a review over a new connection with that client certificate, if any.
func (l *runningListener) call(t *testing.T, certificate *tls.Certificate) error {
	t.Helper()
	tlsConfig := &tls.Config{InsecureSkipVerify: true}
	if certificate != nil {
		// Whatever the server asks for.
		tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}, Timeout: reviewtest.Timeout}
	response, err := client.Post("https://"+l.address+config.WebhookPath, "application/json", strings.NewReader(reviewtest.Review(reviewtest.Pod)))
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("answer %s", response.Status)
	}
	return nil
}

// startVerifying starts a listener that wants client certificates of the CA.
func startVerifying(t *testing.T, ca *clientCA, names ...string) (*runningListener, string) {
	t.Helper()
	cfg := serverConfig(t)
	cfg.ClientCAFile, cfg.ClientNames = filepath.Join(t.TempDir(), "ca.crt"), names
	ca.write(t, cfg.ClientCAFile)
	mountCertificate(t, cfg.CertDir, 1)
	server := newBed(allowing{}, 4, time.Second)
	l := startListener(t, cfg, server, logr.Discard())
	l.waitReady(t)
	return l, cfg.ClientCAFile
}

func TestClientCertificates(t *testing.T) {
	ca, other := newClientCA(t), newClientCA(t)
	withDNS := func(c *x509.Certificate) { c.DNSNames = []string{"api.example.com"} }
	withURI := func(c *x509.Certificate) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "cluster", Path: "/api"}} }
	expired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	forServers := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	tests := map[string]struct {
		names       []string
		certificate *tls.Certificate
		want        bool
	}{
		"right":                  {certificate: ca.client(t, "api"), want: true},
		"none":                   {},
		"of another CA":          {certificate: other.client(t, "api")},
		"expired":                {certificate: ca.client(t, "api", expired)},
		"a server's":             {certificate: ca.client(t, "api", forServers)},
		"self-signed":            {certificate: (&clientCA{}).client(t, "api")},
		"none, names":            {names: []string{"api"}},
		"common name":            {names: []string{"else", "api"}, certificate: ca.client(t, "api"), want: true},
		"DNS name":               {names: []string{"api.example.com"}, certificate: ca.client(t, "x", withDNS), want: true},
		"URI":                    {names: []string{"spiffe://cluster/api"}, certificate: ca.client(t, "x", withURI), want: true},
		"another name":           {names: []string{"api"}, certificate: ca.client(t, "apis", withDNS, withURI)},
		"name but of another CA": {names: []string{"api"}, certificate: other.client(t, "api")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l, _ := startVerifying(t, ca, tc.names...)
			if err := l.call(t, tc.certificate); (err == nil) != tc.want {
				t.Errorf("error %v, want success: %v", err, tc.want)
			}
		})
	}
}

// The CA is replaced without a restart: both, then only the new one. A file that
// is broken for a while changes nothing.
func TestClientCAIsReloaded(t *testing.T) {
	old, renewed := newClientCA(t), newClientCA(t)
	l, path := startVerifying(t, old)
	check := func(when string, wantOld, wantRenewed bool) {
		t.Helper()
		if err := l.call(t, old.client(t, "api")); (err == nil) != wantOld {
			t.Errorf("%s: the old CA's client: %v", when, err)
		}
		if err := l.call(t, renewed.client(t, "api")); (err == nil) != wantRenewed {
			t.Errorf("%s: the new CA's client: %v", when, err)
		}
	}
	check("before", true, false)
	renewed.write(t, path, old)
	check("both", true, true)
	renewed.write(t, path)
	check("after", false, true)
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("broken", false, true)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check("missing", false, true)
	l.stopped(t)
}

// To serve everyone because the CA cannot be read would be the wrong kind of
// failing open.
func TestListenerNeedsClientCA(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"missing": empty + ".missing", "empty": empty} {
		t.Run(name, func(t *testing.T) {
			cfg := serverConfig(t)
			cfg.ClientCAFile = path
			mountCertificate(t, cfg.CertDir, 1)
			l := startListener(t, cfg, http.NotFoundHandler(), logr.Discard())
			select {
			case err := <-l.ended:
				if err == nil || !strings.Contains(err.Error(), "clientCAFile") {
					t.Errorf("ended with %v", err)
				}
			case <-time.After(reviewtest.Timeout):
				t.Fatal("the listener does not end")
			}
		})
	}
}
