package check

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// servingCertificate is the shipped Certificate whose CA cainjector copies.
const servingCertificate = "gpu-binpacker-serving"

func checkCABundle(ctx context.Context, c *cluster) verdict {
	hook, webhook, err := c.webhook(ctx)
	if err != nil {
		return needsWebhook(err)
	}
	source := hook.Annotations[certmanagerv1.WantInjectAnnotation]
	switch {
	case len(webhook.ClientConfig.CABundle) == 0 && source == "":
		return fail("there is none, and no annotation that tells cert-manager's cainjector to write it; every call fails").
			fix("kubectl annotate mutatingwebhookconfiguration "+config.WebhookConfigurationName+` \`,
				"  "+certmanagerv1.WantInjectAnnotation+"="+c.systemNamespace(ctx)+"/"+servingCertificate)
	case len(webhook.ClientConfig.CABundle) == 0:
		return fail("there is none: cert-manager's cainjector has not written it; every call fails").
			fix(c.restart(ctx, cainjectorName))
	}
	if _, err := certificatesIn(webhook.ClientConfig.CABundle); err != nil {
		return fail("it holds no certificate: %v", err).fix(c.restart(ctx, cainjectorName))
	}
	return ok("written by %s", orUser(source))
}

// orUser says who wrote a CA bundle.
func orUser(source string) string {
	if source == "" {
		return "hand"
	}
	return "cainjector, from " + source
}

// checkServedCertificate verifies what the replicas serve, by the Secret that they
// mount, as the API server does. That they do serve it is for the trial to show.
func checkServedCertificate(ctx context.Context, c *cluster) verdict {
	_, webhook, err := c.webhook(ctx)
	if err != nil {
		return needsWebhook(err)
	}
	if len(webhook.ClientConfig.CABundle) == 0 {
		return skip("needs GB205")
	}
	deployment, err := c.deployment(ctx)
	if err != nil {
		return skip("needs GB305")
	}
	name := mountedSecret(deployment.Spec.Template.Spec)
	if name == "" {
		return skip("the Deployment mounts no Secret")
	}
	secret, err := c.Kubernetes.CoreV1().Secrets(deployment.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fail("the Secret %s is not there, so replicas cannot start", name).
			fix("kubectl -n " + deployment.Namespace + " describe certificate " + servingCertificate)
	}
	if err != nil {
		return unread("get secret "+name+" in "+deployment.Namespace, err)
	}
	err = verify(webhook.ClientConfig, secret.Data[corev1.TLSCertKey], c.Now())
	var expired x509.CertificateInvalidError
	switch {
	case err == nil:
		return ok("valid for %s", calledName(webhook.ClientConfig))
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		return fail("%v; every call fails", err).
			fix("kubectl -n "+deployment.Namespace+" describe certificate "+servingCertificate, c.restart(ctx, controllerName))
	case errors.As(err, new(x509.HostnameError)):
		return fail("%v; every call fails", err).
			fix("kubectl -n " + deployment.Namespace + " get certificate " + servingCertificate + " -o jsonpath='{.spec.dnsNames}'")
	}
	return fail("%v; every call fails", err).fix(c.restart(ctx, cainjectorName))
}

// certificateVolume is the volume with the certificate in the shipped Deployment.
const certificateVolume = "certificate"

// mountedSecret is the Secret in that volume, else the first of any volume.
func mountedSecret(spec corev1.PodSpec) string {
	name := ""
	for i := range spec.Volumes {
		secret := spec.Volumes[i].Secret
		if secret != nil && (name == "" || spec.Volumes[i].Name == certificateVolume) {
			name = secret.SecretName
		}
	}
	return name
}

// calledName is the name that the API server expects in the certificate.
func calledName(called admissionregistrationv1.WebhookClientConfig) string {
	if called.Service != nil {
		return called.Service.Name + "." + called.Service.Namespace + ".svc"
	}
	if called.URL != nil {
		if u, err := url.Parse(*called.URL); err == nil {
			return u.Hostname()
		}
	}
	return ""
}

// verify checks a chain, leaf first, as the API server does when it calls.
func verify(called admissionregistrationv1.WebhookClientConfig, chain []byte, now time.Time) error {
	roots, err := certificatesIn(called.CABundle)
	if err != nil {
		return err
	}
	served, err := certificatesIn(chain)
	if err != nil {
		return err
	}
	options := x509.VerifyOptions{
		DNSName: calledName(called), CurrentTime: now,
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, root := range roots {
		options.Roots.AddCert(root)
	}
	for _, between := range served[1:] {
		options.Intermediates.AddCert(between)
	}
	_, err = served[0].Verify(options)
	return err
}

// certificatesIn returns the certificates of a PEM file, at least one.
func certificatesIn(data []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, certificate)
	}
	if len(all) == 0 {
		return nil, errors.New("no certificate in PEM form")
	}
	return all, nil
}
