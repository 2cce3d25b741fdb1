package check

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	certmanagermeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// now is the time of all tests, installed when the installation was made.
var (
	now       = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	installed = now.Add(-24 * time.Hour)
)

// bed is a cluster of fake clients. Tests change what healthy returns.
type bed struct {
	version     string
	served      []string // group/version/resource
	hook        *admissionregistrationv1.MutatingWebhookConfiguration
	deployments []*appsv1.Deployment
	secret      *corev1.Secret
	certificate *certmanagerv1.Certificate
	noCRD       bool
	namespaces  []*corev1.Namespace
	nodes       []*corev1.Node
	pods        []*corev1.Pod
	configMaps  []*corev1.ConfigMap
	cfg         config.Configuration
	cfgErr      error
	metrics     string
	metricsErr  error
	// denied are permissions that the user lacks: "verb resource", or "*".
	denied map[string]bool
	// broken are requests that fail otherwise, of the same form.
	broken map[string]bool
	// trial changes the pod on trial as webhooks would, where ours is called.
	trial func(*corev1.Pod) error
	// judge accepts or refuses pods after that, as quotas and policies do.
	judge func(*corev1.Pod) error

	options Options
}

// ours is the Deployment of the installation.
func (b *bed) ours() *appsv1.Deployment { return b.deployments[0] }

// webhook is the installation's.
func (b *bed) webhook() *admissionregistrationv1.MutatingWebhook { return &b.hook.Webhooks[0] }

func (b *bed) node(name string, gpus map[string]string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1152Gi"), corev1.ResourcePods: resource.MustParse("110"),
		},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	for gpu, quantity := range gpus {
		node.Status.Allocatable[corev1.ResourceName(gpu)] = resource.MustParse(quantity)
	}
	b.nodes = append(b.nodes, node)
}

func (b *bed) namespace(name, value string) {
	b.namespaces = append(b.namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{config.LabelEnabled: value, corev1.LabelMetadataName: name},
	}})
}

// pod adds a pod of team-a that asks for one of a resource.
func (b *bed) pod(name, gpu string, change ...func(*corev1.Pod)) {
	limits := corev1.ResourceList{corev1.ResourceName(gpu): resource.MustParse("1")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(installed.Add(time.Hour))},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: limits, Limits: limits},
		}}},
	}
	for _, f := range change {
		f(pod)
	}
	b.pods = append(b.pods, pod)
}

func (b *bed) deployment(namespace, name string, replicas int32, labels map[string]string) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To(replicas)},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: replicas},
	}
	b.deployments = append(b.deployments, d)
	return d
}

// healthy is a cluster with everything as it should be.
func healthy(t *testing.T) *bed {
	t.Helper()
	b := &bed{
		version: "v1.37.2",
		served: []string{
			"admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "cert-manager.io/v1/certificates",
		},
		cfg:     config.Default(),
		metrics: typed(callsMetric, `{name="pods.gpu-binpacker.io",rejected="false"} 640`),
		trial: func(pod *corev1.Pod) error {
			pod.Annotations = map[string]string{config.AnnotationSteering: config.SteeringRanked, config.AnnotationTarget: "gpu-1"}
			return nil
		},
	}
	b.hook = shippedWebhook(t)
	b.webhook().MatchConditions = config.MatchConditions(b.cfg.Resources)
	ca, chain := certificates(t, "gpu-binpacker.gpu-binpacker-system.svc", now.Add(60*24*time.Hour))
	b.webhook().ClientConfig.CABundle = ca
	b.secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.SystemNamespace, Name: "gpu-binpacker-serving-cert"},
		Data:       map[string][]byte{corev1.TLSCertKey: chain},
	}
	b.certificate = &certmanagerv1.Certificate{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.SystemNamespace, Name: servingCertificate},
		Status: certmanagerv1.CertificateStatus{
			Conditions:  []certmanagerv1.CertificateCondition{{Type: certmanagerv1.CertificateConditionReady, Status: certmanagermeta.ConditionTrue}},
			NotAfter:    ptr.To(metav1.NewTime(now.Add(60 * 24 * time.Hour))),
			RenewalTime: ptr.To(metav1.NewTime(now.Add(30 * 24 * time.Hour))),
		},
	}
	ours := b.deployment(config.SystemNamespace, "gpu-binpacker", 2, map[string]string{nameLabel: "gpu-binpacker"})
	ours.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "certificate", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: b.secret.Name},
	}}}
	b.deployment("cert-manager", "cert-manager", 1, map[string]string{nameLabel: "cert-manager"})
	b.deployment("cert-manager", "cert-manager-cainjector", 1, map[string]string{nameLabel: "cainjector"})
	b.namespace("team-a", "true")
	b.node("gpu-1", map[string]string{"nvidia.com/gpu": "8"})
	b.node("gpu-2", map[string]string{"nvidia.com/gpu": "8"})
	b.pod("train-0", "nvidia.com/gpu", steered)
	return b
}

func steered(pod *corev1.Pod) {
	pod.Annotations = map[string]string{config.AnnotationSteering: config.SteeringRanked}
}

// shippedWebhook is the one in the manifests.
func shippedWebhook(t *testing.T) *admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "webhook", "manifests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(content, hook); err != nil {
		t.Fatal(err)
	}
	hook.CreationTimestamp = metav1.NewTime(installed)
	return hook
}

// certificates returns a CA and a certificate that it signed, both as PEM.
func certificates(t *testing.T, name string, notAfter time.Time) (ca, chain []byte) {
	t.Helper()
	sign := func(template, parent *x509.Certificate, public, by *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &public.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-365 * 24 * time.Hour), NotAfter: now.Add(365 * 24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: now.Add(-300 * 24 * time.Hour), NotAfter: notAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	rootKey := key()
	return sign(root, root, rootKey, rootKey), sign(leaf, root, key(), rootKey)
}
