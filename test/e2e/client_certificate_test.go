package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
)

// apiServerName is the name in the API server's client certificate.
const apiServerName = "kube-apiserver-webhooks"

// With client certificates demanded, an API server that has none is not answered,
// and creates its pods unchanged; one that presents it, as docs/operating.md says,
// has its pods steered. A control plane of its own: the API server reads this at
// its start.
func TestClientCertificateOfTheAPIServer(t *testing.T) {
	ctrl.SetLogger(logr.Discard()) // or it complains about being used without one
	dir := t.TempDir()
	kubeconfig, caFile := filepath.Join(dir, "webhooks.kubeconfig"), filepath.Join(dir, "ca.crt")
	admission := filepath.Join(dir, "admission.yaml")
	write(t, admission, `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: `+kubeconfig+"\n")
	presents := writeClientCertificate(t, caFile)
	writeKubeconfig(t, kubeconfig, "no-webhook", presents)
	cp := controlplane.StartForTest(t, controlplane.Options{
		CertManager: true, Schedulers: []controlplane.Scheduler{},
		ExtraArgs: map[string][]string{controlplane.APIServer: {"--admission-control-config-file=" + admission}},
	})
	installed := installation.InstallForTest(t, cp, installation.Options{Replicas: 1, Configuration: fmt.Appendf(nil, `apiVersion: %s
kind: %s
server:
  clientCAFile: %s
  clientNames: [%s]
`, config.APIVersion, config.Kind, caFile, apiServerName)})
	if err := cp.CreateNodes(t.Context(), controlplane.Nodes("verified", 1, node8)...); err != nil {
		t.Fatal(err)
	}
	if err := cp.CreateNamespace(t.Context(), "verified", map[string]string{config.LabelEnabled: "true"}); err != nil {
		t.Fatal(err)
	}
	pod := gpuPod(1)
	pod.Namespace = "verified"
	if err := cp.Client().Create(t.Context(), pod); err != nil {
		t.Fatalf("the pod was not created: %v", err)
	}
	failed, err := installed.FailOpens(t.Context())
	if err != nil || failed == 0 || pod.Annotations[config.AnnotationSteering] != "" {
		t.Errorf("without a certificate: %d calls failed (%v), annotations %v", failed, err, pod.Annotations)
	}

	writeKubeconfig(t, kubeconfig, webhookHost(t, cp), presents)
	// Killed, since it waits for watches to end otherwise.
	apiServer := cp.Component(controlplane.APIServer)
	if err := errors.Join(apiServer.Kill(), apiServer.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := installed.WaitSteering(t.Context()); err != nil {
		t.Error(err)
	}
}

// webhookHost is how the API server's kubeconfig names the webhook; the port is
// left out where it is 443.
func webhookHost(t *testing.T, cp *controlplane.ControlPlane) string {
	t.Helper()
	webhook := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := cp.Client().Get(t.Context(), client.ObjectKey{Name: config.WebhookConfigurationName}, webhook); err != nil {
		t.Fatal(err)
	}
	service := webhook.Webhooks[0].ClientConfig.Service
	return fmt.Sprintf("%s.%s.svc:%d", service.Name, service.Namespace, *service.Port)
}

// writeKubeconfig says what to present to one webhook.
func writeKubeconfig(t *testing.T, path, webhook string, presents *clientcmdapi.AuthInfo) {
	t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.AuthInfos[webhook] = presents
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		t.Fatal(err)
	}
}

// writeClientCertificate makes a CA, writes it to the file, and returns a client
// certificate of it.
func writeClientCertificate(t *testing.T, caFile string) *clientcmdapi.AuthInfo {
	t.Helper()
	caKey, key := newKey(t), newKey(t)
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "webhook clients"}, caKey)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := cert.EncodeCertificates(ca)
	if err != nil {
		t.Fatal(err)
	}
	write(t, caFile, string(bundle))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: apiServerName},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore: ca.NotBefore, NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := cert.EncodeCertificates(parsed)
	if err != nil {
		t.Fatal(err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: private}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
