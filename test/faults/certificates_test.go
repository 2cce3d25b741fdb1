package faults

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	certmanagermeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
)

// Names in config/certmanager.
const (
	caCertificate, caSecret           = "gpu-binpacker-ca", "gpu-binpacker-ca"
	servingCertificate, servingSecret = "gpu-binpacker-serving", "gpu-binpacker-serving-cert"

	// tlsPeekTimeout limits a look at a replica's certificate.
	tlsPeekTimeout = 5 * time.Second
)

// certificateNotIssued takes everything that cert-manager has made away, as just
// after the manifests were applied, and restarts the replicas.
func certificateNotIssued() fault {
	var starting errgroup.Group
	return fault{
		name: "certificate not yet issued",
		inject: func(ctx context.Context, b *bed) error {
			if err := errors.Join(b.Component(controlplane.CertManager).Kill(), killReplicas(ctx, b)); err != nil {
				return err
			}
			for _, name := range []string{servingSecret, caSecret} {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: config.SystemNamespace, Name: name}}
				if err := b.Client().Delete(ctx, secret); err != nil {
					return fmt.Errorf("deleting Secret %s: %w", name, err)
				}
			}
			if err := b.patchWebhook(ctx, "/webhooks/0/clientConfig/caBundle", nil); err != nil {
				return err
			}
			if err := emptyDir(b.installed.CertificatesDir()); err != nil {
				return err
			}
			starting.Go(func() error { return startReplicas(ctx, b) }) // ready after the end
			return nil
		},
		shows: unsteeredByRunning,
		end: func(ctx context.Context, b *bed) error {
			return errors.Join(startCertManager(ctx, b), starting.Wait())
		},
	}
}

// emptyDir removes what is in a folder.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

func startCertManager(ctx context.Context, b *bed) error {
	return b.Component(controlplane.CertManager).Start(ctx)
}

func renewLeaf(ctx context.Context, b *bed) error {
	return b.renew(ctx, servingCertificate, servingSecret)
}

// rotateCA renews the CA and then the certificate, until the new CA has signed it:
// for a moment cert-manager's caches still hold the old one.
func rotateCA(ctx context.Context, b *bed) error {
	if err := b.renew(ctx, caCertificate, caSecret); err != nil {
		return err
	}
	ca, err := b.secret(ctx, caSecret)
	if err != nil {
		return err
	}
	for {
		if err := b.renew(ctx, servingCertificate, servingSecret); err != nil {
			return err
		}
		serving, err := b.secret(ctx, servingSecret)
		if err != nil || bytes.Equal(serving.Data[certmanagermeta.TLSCAKey], ca.Data[corev1.TLSCertKey]) {
			return err
		}
	}
}

// renew makes cert-manager issue a certificate again, as cmctl renew does, and
// waits until it has.
func (b *bed) renew(ctx context.Context, name, secretName string) error {
	before, err := b.secret(ctx, secretName)
	if err != nil {
		return err
	}
	certificate := &certmanagerv1.Certificate{}
	key := client.ObjectKey{Namespace: config.SystemNamespace, Name: name}
	err = wait(ctx, "Certificate "+name+" to take the mark to be issued", func(ctx context.Context) (bool, error) {
		if err := b.Client().Get(ctx, key, certificate); err != nil {
			return false, err
		}
		now := metav1.Now()
		certificate.Status.Conditions = append(certificate.Status.Conditions, certmanagerv1.CertificateCondition{
			Type: certmanagerv1.CertificateConditionIssuing, Status: certmanagermeta.ConditionTrue,
			Reason: "ManuallyTriggered", LastTransitionTime: &now, ObservedGeneration: certificate.Generation,
		})
		err := b.Client().Status().Update(ctx, certificate)
		return err == nil, err // a conflict with cert-manager: once more
	})
	if err != nil {
		return err
	}
	return wait(ctx, "Secret "+secretName+" to be renewed", func(ctx context.Context) (bool, error) {
		now, err := b.secret(ctx, secretName)
		return err == nil && !bytes.Equal(now.Data[corev1.TLSCertKey], before.Data[corev1.TLSCertKey]), err
	})
}

func (b *bed) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := b.Client().Get(ctx, client.ObjectKey{Namespace: config.SystemNamespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	return secret, nil
}

// newLeafServed is true when all replicas show the certificate that is in the
// Secret, and pods have been created with it for a second.
func newLeafServed(ctx context.Context, b *bed, since time.Time) (bool, error) {
	secret, err := b.secret(ctx, servingSecret)
	if err != nil {
		return false, err
	}
	leaf, err := parseCertificate(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return false, err
	}
	err = b.each(func(replica *installation.Replica) error {
		shown, err := shownCertificate(ctx, replica.WebhookAddress())
		if err != nil {
			return err
		}
		if !shown.Equal(leaf) {
			return fmt.Errorf("%s shows the certificate of %s, not that of %s", replica.Name(), shown.NotBefore, leaf.NotBefore)
		}
		return nil
	})
	return err == nil && len(b.steered.Since(since)) >= podsPerSecond, err
}

// expiredServed is true when the replicas show the expired certificate and pods
// are created without steering.
func expiredServed(ctx context.Context, b *bed, since time.Time) (bool, error) {
	served, err := newLeafServed(ctx, b, since)
	if err != nil || !served {
		return false, err
	}
	return unsteered(ctx, b, since)
}

// newCAKnown is newLeafServed when the API server has been told the new CA.
func newCAKnown(ctx context.Context, b *bed, since time.Time) (bool, error) {
	ca, err := b.secret(ctx, caSecret)
	if err != nil {
		return false, err
	}
	webhook, err := b.webhook(ctx)
	if err != nil {
		return false, err
	}
	// cainjector keeps the old CA in the bundle.
	if !bytes.Contains(webhook.Webhooks[0].ClientConfig.CABundle, bytes.TrimSpace(ca.Data[corev1.TLSCertKey])) {
		return false, errors.New("the webhook configuration does not have the new CA")
	}
	return newLeafServed(ctx, b, since)
}

// shownCertificate is the certificate that a server shows.
func shownCertificate(ctx context.Context, address string) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, tlsPeekTimeout)
	defer cancel()
	// Whom it belongs to does not matter: it is compared with a known one.
	dialer := tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("looking at the certificate of %s: %w", address, err)
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

func parseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// expireCertificate puts a certificate into the Secret that ended an hour ago, and
// keeps cert-manager from renewing it.
func expireCertificate(ctx context.Context, b *bed) error {
	if err := b.Component(controlplane.CertManager).Kill(); err != nil {
		return err
	}
	secret, err := b.secret(ctx, servingSecret)
	if err != nil {
		return err
	}
	ca, err := b.secret(ctx, caSecret)
	if err != nil {
		return err
	}
	secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], err = expired(secret, ca)
	if err != nil {
		return fmt.Errorf("making an expired certificate: %w", err)
	}
	if err := b.Client().Update(ctx, secret); err != nil {
		return fmt.Errorf("writing an expired certificate: %w", err)
	}
	return nil
}

// expired issues a certificate with the names of an existing one that has ended.
func expired(secret, ca *corev1.Secret) (certificate, key []byte, err error) {
	leaf, err := parseCertificate(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return nil, nil, err
	}
	issuer, err := tls.X509KeyPair(ca.Data[corev1.TLSCertKey], ca.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, nil, err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "expired"},
		DNSNames:     leaf.DNSNames,
		NotBefore:    time.Now().Add(-2 * time.Hour),
		NotAfter:     time.Now().Add(-time.Hour),
		KeyUsage:     leaf.KeyUsage,
		ExtKeyUsage:  leaf.ExtKeyUsage,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, issuer.Leaf, private.Public(), issuer.PrivateKey)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), key, err
}
