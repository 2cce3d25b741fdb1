package controlplane

import (
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	certmanagermeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testCertificates builds the chain that the product uses and expects its CA in
// a webhook configuration.
func testCertificates(t *testing.T, cp *ControlPlane) {
	objects := certificateChain("default")
	webhook := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "smoke",
			Annotations: map[string]string{"cert-manager.io/inject-ca-from": "default/leaf"},
		},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "smoke.gpu-binpacker.io",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "smoke"},
			},
			FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	for _, object := range append(objects, webhook) {
		if err := cp.Client().Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	leaf := &certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "leaf"}}
	eventually(t, cp, leaf, func() bool {
		for _, condition := range leaf.Status.Conditions {
			if condition.Type == certmanagerv1.CertificateConditionReady && condition.Status == certmanagermeta.ConditionTrue {
				return true
			}
		}
		return false
	})
	eventually(t, cp, webhook, func() bool { return len(webhook.Webhooks[0].ClientConfig.CABundle) > 0 })
}

// certificateChain is a self-signed CA, an issuer that uses it, and a
// certificate of that issuer.
func certificateChain(namespace string) []client.Object {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	return []client.Object{
		&certmanagerv1.Issuer{
			ObjectMeta: meta("bootstrap"),
			Spec: certmanagerv1.IssuerSpec{IssuerConfig: certmanagerv1.IssuerConfig{
				SelfSigned: &certmanagerv1.SelfSignedIssuer{},
			}},
		},
		&certmanagerv1.Certificate{
			ObjectMeta: meta("ca"),
			Spec: certmanagerv1.CertificateSpec{
				IsCA: true, CommonName: "ca", SecretName: "ca",
				IssuerRef: certmanagermeta.IssuerReference{Name: "bootstrap"},
			},
		},
		&certmanagerv1.Issuer{
			ObjectMeta: meta("issuer"),
			Spec: certmanagerv1.IssuerSpec{IssuerConfig: certmanagerv1.IssuerConfig{
				CA: &certmanagerv1.CAIssuer{SecretName: "ca"},
			}},
		},
		&certmanagerv1.Certificate{
			ObjectMeta: meta("leaf"),
			Spec: certmanagerv1.CertificateSpec{
				DNSNames: []string{"smoke.default.svc"}, SecretName: "leaf",
				IssuerRef: certmanagermeta.IssuerReference{Name: "issuer"},
			},
		},
	}
}
