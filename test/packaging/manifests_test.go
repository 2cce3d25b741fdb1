package packaging

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const (
	name        = "gpu-binpacker"
	servingCert = "gpu-binpacker-serving-cert"
)

// The whole installation, so that nothing comes in or gets lost by accident.
func TestInstallationHasExactlyTheseObjects(t *testing.T) {
	got := installation(t)
	names := got.names()
	for i, object := range names {
		// The ConfigMap's name ends in a hash of its content.
		if rest, ok := strings.CutPrefix(object, "ConfigMap/gpu-binpacker-configuration-"); ok && len(rest) == 10 {
			names[i] = "ConfigMap/gpu-binpacker-configuration"
		}
	}
	want := []string{
		"Namespace/gpu-binpacker-system",
		"ServiceAccount/gpu-binpacker",
		"ClusterRole/gpu-binpacker",
		"ClusterRole/gpu-binpacker-metrics-reader",
		"ClusterRoleBinding/gpu-binpacker",
		"ConfigMap/gpu-binpacker-configuration",
		"Service/gpu-binpacker",
		"Service/gpu-binpacker-metrics",
		"Deployment/gpu-binpacker",
		"PodDisruptionBudget/gpu-binpacker",
		"Certificate/gpu-binpacker-ca",
		"Certificate/gpu-binpacker-serving",
		"Issuer/gpu-binpacker-ca",
		"Issuer/gpu-binpacker-selfsigned",
		"NetworkPolicy/gpu-binpacker",
		"MutatingWebhookConfiguration/zz-gpu-binpacker",
	}
	if first, last := names[0], names[len(names)-1]; first != want[0] || last != want[len(want)-1] {
		t.Errorf("the first object is %s and the last %s, want the namespace and the webhook", first, last)
	}
	slices.Sort(names)
	slices.Sort(want)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	for _, object := range got {
		switch object.(type) {
		case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *admissionregistrationv1.MutatingWebhookConfiguration:
		default:
			if object.GetNamespace() != config.SystemNamespace {
				t.Errorf("%T %s is in namespace %q, want %q", object, object.GetName(), object.GetNamespace(), config.SystemNamespace)
			}
		}
		if got := object.GetLabels()["app.kubernetes.io/name"]; got != name {
			t.Errorf("%T %s has the name label %q, want %q", object, object.GetName(), got, name)
		}
	}
}

// A test that nothing is misspelt is worth something only if it would notice.
func TestMistakesAreNoticed(t *testing.T) {
	rendered := render(t, "default")
	for mistake, tc := range map[string]struct{ old, new string }{
		"field":            {"failurePolicy: Ignore", "failurePolcy: Ignore"},
		"case of a field":  {"failurePolicy: Ignore", "FailurePolicy: Ignore"},
		"nested field":     {"allowPrivilegeEscalation: false", "allowPrivilegeEscalations: false"},
		"repeated field":   {"failurePolicy: Ignore", "failurePolicy: Ignore\n  failurePolicy: Fail"},
		"type of a field":  {"timeoutSeconds: 1", "timeoutSeconds: one"},
		"kind":             {"kind: PodDisruptionBudget", "kind: PodDisruptionBudgets"},
		"version":          {"apiVersion: policy/v1", "apiVersion: policy/v2"},
		"cert-manager":     {"renewBefore: 720h", "renewedBefore: 720h"},
		"unknown resource": {"apiVersion: cert-manager.io/v1\nkind: Issuer", "apiVersion: cert-manager.io/v1\nkind: Issuers"},
	} {
		t.Run(mistake, func(t *testing.T) {
			broken := strings.Replace(rendered, tc.old, tc.new, 1)
			if broken == rendered {
				t.Fatalf("the rendered manifests do not contain %q", tc.old)
			}
			if _, err := decodeStrictly(broken); err == nil {
				t.Errorf("%q instead of %q was accepted", tc.new, tc.old)
			}
		})
	}
}

func TestCertificates(t *testing.T) {
	all := installation(t)
	serving := find[*certmanagerv1.Certificate](t, all, "gpu-binpacker-serving").Spec
	ca := find[*certmanagerv1.Certificate](t, all, "gpu-binpacker-ca").Spec

	// The names by which the API server calls the Service.
	service := find[*corev1.Service](t, all, name)
	host := service.Name + "." + service.Namespace + ".svc"
	if diff := cmp.Diff([]string{host, host + ".cluster.local"}, serving.DNSNames); diff != "" {
		t.Errorf("DNS names (-want +got):\n%s", diff)
	}
	if !slices.Contains(serving.Usages, certmanagerv1.UsageServerAuth) {
		t.Errorf("usages of the serving certificate are %v, want server auth among them", serving.Usages)
	}
	if serving.IsCA || !ca.IsCA {
		t.Errorf("isCA is %v for the serving certificate and %v for the CA", serving.IsCA, ca.IsCA)
	}

	// selfSigned -> CA -> serving, through Secrets and Issuers.
	if issuer := find[*certmanagerv1.Issuer](t, all, ca.IssuerRef.Name); issuer.Spec.SelfSigned == nil {
		t.Errorf("the CA's issuer %s is not self-signed", issuer.Name)
	}
	if issuer := find[*certmanagerv1.Issuer](t, all, serving.IssuerRef.Name); issuer.Spec.CA == nil || issuer.Spec.CA.SecretName != ca.SecretName {
		t.Errorf("the serving certificate's issuer %s does not use the CA's Secret %s", issuer.Name, ca.SecretName)
	}
	for certificate, spec := range map[string]certmanagerv1.CertificateSpec{"serving": serving, "CA": ca} {
		if spec.IssuerRef.Kind != "Issuer" || spec.IssuerRef.Group != "cert-manager.io" {
			t.Errorf("issuerRef of the %s certificate is %+v", certificate, spec.IssuerRef)
		}
		if spec.PrivateKey.RotationPolicy != certmanagerv1.RotationPolicyAlways {
			t.Errorf("rotationPolicy of the %s certificate is %q", certificate, spec.PrivateKey.RotationPolicy)
		}
		if spec.RenewBefore.Duration < 14*24*time.Hour || spec.RenewBefore.Duration >= spec.Duration.Duration {
			t.Errorf("the %s certificate lives %s and is renewed %s before the end", certificate, spec.Duration.Duration, spec.RenewBefore.Duration)
		}
	}
	// cert-manager does not renew what a CA signed when it renews the CA, so that
	// the old one must outlive every certificate that it signed.
	if ca.RenewBefore.Duration < serving.Duration.Duration {
		t.Errorf("the CA is renewed %s before its end, but a serving certificate lives %s", ca.RenewBefore.Duration, serving.Duration.Duration)
	}

	// The pod serves what cert-manager writes, from a folder that is updated.
	volumes, mounts := map[string]corev1.Volume{}, map[string]corev1.VolumeMount{}
	for _, volume := range theTemplate(t, all).Spec.Volumes {
		volumes[volume.Name] = volume
	}
	for _, mount := range theContainer(t, all).VolumeMounts {
		mounts[mount.MountPath] = mount
		if !mount.ReadOnly || mount.SubPath != "" || mount.SubPathExpr != "" {
			t.Errorf("mount %+v, want a read-only folder", mount)
		}
	}
	mounted := volumes[mounts[config.Default().Server.CertDir].Name]
	if serving.SecretName != servingCert || mounted.Secret == nil || mounted.Secret.SecretName != servingCert {
		t.Errorf("certificate in Secret %s, mounted %+v, want both %s", serving.SecretName, mounted, servingCert)
	}
	if mode := *mounted.Secret.DefaultMode; mode != 0o440 {
		t.Errorf("the private key has mode %#o, want 0440", mode)
	}
}

// The process reads the file that the ConfigMap holds.
func TestConfigurationIsMounted(t *testing.T) {
	if diff := cmp.Diff(config.Default(), mountedConfiguration(t, installation(t))); diff != "" {
		t.Errorf("mounted configuration (-default +got):\n%s", diff)
	}
}

// mountedConfiguration follows the container's --config through mount and volume
// to the ConfigMap and reads the file there.
func mountedConfiguration(t *testing.T, all objects) config.Configuration {
	t.Helper()
	container := theContainer(t, all)
	if diff := cmp.Diff([]string{"serve", "--config=/etc/gpu-binpacker/config/configuration.yaml"}, container.Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	folder, file := path.Split(strings.TrimPrefix(container.Args[1], "--config="))
	var volume string
	for _, mount := range container.VolumeMounts {
		if mount.MountPath == path.Clean(folder) {
			volume = mount.Name
		}
	}
	for _, v := range theTemplate(t, all).Spec.Volumes {
		if v.Name != volume {
			continue
		}
		got, err := config.Parse([]byte(find[*corev1.ConfigMap](t, all, v.ConfigMap.Name).Data[file]))
		if err != nil {
			t.Fatal(err)
		}
		if errs := config.Validate(got); len(errs) > 0 {
			t.Errorf("mounted configuration: %v", errs.ToAggregate())
		}
		return got
	}
	t.Fatalf("no volume is mounted at %s", folder)
	return config.Configuration{}
}
