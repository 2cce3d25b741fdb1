package chart

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	release "helm.sh/helm/v4/pkg/release/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

const (
	waitInterval = 200 * time.Millisecond
	waitTimeout  = time.Minute
)

// life is the life of a release on a real control plane. Each step needs the one
// before.
type life struct {
	cp   *controlplane.ControlPlane
	helm *Helm
	// latest is the release after the latest step.
	latest *release.Release
}

func TestOnAControlPlane(t *testing.T) {
	cp := controlplane.StartForTest(t, controlplane.Options{ControllerManager: true, Kwok: true, CertManager: true})
	// The pods of the Deployment run here as well: as far as kwok lets them.
	nodes := controlplane.Nodes("gpu", 2, map[string]string{"cpu": "96", "memory": "1152Gi", "nvidia.com/gpu": "8"})
	if err := cp.CreateNodes(t.Context(), nodes...); err != nil {
		t.Fatal(err)
	}
	helm, err := NewHelm(cp.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	l := &life{cp: cp, helm: helm}
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"install", l.install}, {"test", l.test}, {"upgrade", l.upgrade}, {"steer", l.steer}, {"uninstall", l.uninstall},
	} {
		if !t.Run(step.name, step.run) {
			t.Fatalf("step %s failed", step.name)
		}
	}
}

// install waits, as Helm does, for pods that are ready and certificates.
func (l *life) install(t *testing.T) {
	var err error
	if l.latest, err = l.helm.Install(t.Context(), set("test.wait", "1s")); err != nil {
		t.Fatal(err)
	}
	if replicas := l.deployment(t).Status.ReadyReplicas; replicas != 2 {
		t.Errorf("%d replicas are ready, want 2", replicas)
	}
	l.caBundle(t)
}

// upgrade changes the configuration. It must reach the pods and the API server, and
// the CA that cainjector wrote must stay.
func (l *life) upgrade(t *testing.T) {
	ca, old := l.caBundle(t), l.deployment(t).Spec.Template
	names := []string{"example.com/gpu", "nvidia.com/gpu"}
	var err error
	l.latest, err = l.helm.Upgrade(t.Context(), values{"configuration": values{
		"log": values{"level": "Debug"}, "resources": values{"names": list(names), "prefixes": []any{}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ca, l.caBundle(t)); diff != "" {
		t.Errorf("the caBundle has changed (-old +new):\n%s", diff)
	}
	resources := config.Resources{Names: names, Prefixes: []string{}}
	if diff := cmp.Diff(config.MatchConditions(resources), l.webhook(t).MatchConditions); diff != "" {
		t.Errorf("matchConditions (-want +got):\n%s", diff)
	}
	var configMap corev1.ConfigMap
	l.get(t, Namespace, configurationName, &configMap)
	cfg, err := config.Parse([]byte(configMap.Data["configuration.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(resources, cfg.Resources); diff != "" || cfg.Log.Level != config.LogDebug {
		t.Errorf("log level %s, resources (-want +got):\n%s", cfg.Log.Level, diff)
	}
	deployment := l.deployment(t)
	if cmp.Equal(old, deployment.Spec.Template) || deployment.Status.UpdatedReplicas != 2 || deployment.Status.ReadyReplicas != 2 {
		t.Errorf("the pods were not replaced: %+v", deployment.Status)
	}
}

// steer runs the binary with what the release has installed: configuration,
// arguments, certificate, rights. Package installation says what it must change.
func (l *life) steer(t *testing.T) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for file, content := range map[string]string{"release.yaml": l.latest.Manifest, "kustomization.yaml": "resources: [release.yaml]\n"} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	relative, err := filepath.Rel(root, folder)
	if err != nil {
		t.Fatal(err)
	}
	installed := installation.InstallForTest(t, l.cp, installation.Options{Kustomization: relative, Replicas: 1})
	if err := installed.WaitSteering(t.Context()); err != nil {
		t.Error(err)
	}
}

// uninstall leaves the namespace and the Secrets that the chart's README names, and
// nothing else.
func (l *life) uninstall(t *testing.T) {
	if err := l.helm.Uninstall(); err != nil {
		t.Fatal(err)
	}
	namespace := []string{
		"configmaps gpu-binpacker-system/kube-root-ca.crt",
		"namespaces /gpu-binpacker-system",
		"serviceaccounts gpu-binpacker-system/default",
	}
	secrets := []string{"gpu-binpacker-ca", "gpu-binpacker-serving-cert"}
	want := slices.Clone(namespace)
	for _, name := range secrets {
		want = append(want, "secrets "+Namespace+"/"+name)
	}
	l.waitLeft(t, want)
	for _, name := range secrets {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
		if err := l.cp.Client().Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	l.waitLeft(t, namespace)
}

// waitLeft waits until these objects are all that has the product's name in its own
// name or its namespace, as everything has that an installation makes: what the
// garbage collector removes takes a moment.
func (l *life) waitLeft(t *testing.T, want []string) {
	t.Helper()
	slices.Sort(want)
	var diff string
	err := wait.PollUntilContextTimeout(t.Context(), waitInterval, waitTimeout, true, func(ctx context.Context) (bool, error) {
		now, err := inventory(ctx, l.cp)
		if err != nil {
			return false, err
		}
		left := slices.DeleteFunc(now, func(object string) bool {
			return !strings.Contains(object, "gpu-binpacker") || strings.Contains(object, "test-bed-scraper") // of step steer
		})
		diff = cmp.Diff(want, left)
		return diff == "", nil
	})
	if err != nil {
		t.Errorf("%v: what is left (-want +got):\n%s", err, diff)
	}
}

// webhook is the webhook as it is in the API server.
func (l *life) webhook(t *testing.T) admissionregistrationv1.MutatingWebhook {
	t.Helper()
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	l.get(t, "", config.WebhookConfigurationName, &configuration)
	return configuration.Webhooks[0]
}

// caBundle waits for the CA that cainjector writes.
func (l *life) caBundle(t *testing.T) []byte {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), waitInterval, waitTimeout, true, func(context.Context) (bool, error) {
		return len(l.webhook(t).ClientConfig.CABundle) > 0, nil
	})
	if err != nil {
		t.Fatalf("waiting for the caBundle: %v", err)
	}
	return l.webhook(t).ClientConfig.CABundle
}

func (l *life) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	l.get(t, Namespace, "gpu-binpacker", deployment)
	return deployment
}

func (l *life) get(t *testing.T, namespace, name string, into client.Object) {
	t.Helper()
	if err := l.cp.Client().Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatal(err)
	}
}
