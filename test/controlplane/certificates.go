package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const certificateLifetime = 24 * time.Hour

// authority is the CA of one control plane. It signs the certificate that all
// components serve with and those of the API server's clients.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// keyPair is a certificate and its key in PEM.
type keyPair struct {
	certificate []byte
	key         []byte
}

// newAuthority makes a CA.
func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the CA: %w", err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "gpu-binpacker-test-bed"}, key)
	if err != nil {
		return nil, fmt.Errorf("making the CA: %w", err)
	}
	return &authority{certificate: certificate, key: key}, nil
}

// pem returns the CA certificate.
func (a *authority) pem() []byte {
	return encodeCertificate(a.certificate.Raw)
}

// client issues a certificate that the API server accepts for a user.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server issues the certificate that every component serves with.
func (a *authority) server() (keyPair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "test-bed"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	})
}

// issue completes and signs a certificate.
func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("making the key of %s: %w", template.Subject.CommonName, err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return keyPair{}, fmt.Errorf("making the serial number of %s: %w", template.Subject.CommonName, err)
	}
	template.NotBefore = a.certificate.NotBefore
	template.NotAfter = time.Now().Add(certificateLifetime)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("signing the certificate of %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("encoding the key of %s: %w", template.Subject.CommonName, err)
	}
	return keyPair{certificate: encodeCertificate(signed), key: keyPEM}, nil
}

// Files of the public key infrastructure in a control plane's directory.
const (
	caCertificateFile  = "ca.crt"
	caKeyFile          = "ca.key"
	serverCertificate  = "serving.crt"
	serverKey          = "serving.key"
	serviceAccountKey  = "service-account.key"
	privateFileMode    = 0o600
	privateFolderMode  = 0o700
	adminUser          = "test-bed-admin"
	administratorGroup = "system:masters"
)

// writePKI writes the files that components read: the CA, the serving
// certificate and the key that signs service account tokens.
func writePKI(dir string, ca *authority) error {
	server, err := ca.server()
	if err != nil {
		return err
	}
	caKey, err := keyutil.MarshalPrivateKeyToPEM(ca.key)
	if err != nil {
		return fmt.Errorf("encoding the CA's key: %w", err)
	}
	tokenKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("making the service account key: %w", err)
	}
	for name, content := range map[string][]byte{
		caCertificateFile: ca.pem(),
		caKeyFile:         caKey,
		serverCertificate: server.certificate,
		serverKey:         server.key,
		serviceAccountKey: tokenKey,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, privateFileMode); err != nil {
			return fmt.Errorf("writing certificates: %w", err)
		}
	}
	return nil
}

// encodeCertificate returns a certificate in PEM.
func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}
