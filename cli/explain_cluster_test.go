package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

// From a cluster comes the same as from a state file of it, and the scheduler's
// message for a pod that waits.
func TestExplainCluster(t *testing.T) {
	w := loadState(t, data("cluster.yaml"))
	for i := range w.Pods {
		switch p := &w.Pods[i]; p.Name {
		case "waiting-0":
			p.Status.Conditions[0].Message = "0/8 nodes are available: 8 Insufficient nvidia.com/gpu."
		case "coming-0":
			p.CreationTimestamp = metav1.Now() // it still counts where it is expected
		}
	}
	out, err := explainIn(t, fakeCluster(t, w), "waiting-0", "-n", "team-a")
	if err != nil {
		t.Fatal(err)
	}
	// The fake cluster has the webhook, but no Deployment with a configuration.
	for _, want := range []string{"nowhere yet: Unschedulable: 0/8 nodes are available", "going by its default configuration"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	got, err := explainIn(t, fakeCluster(t, w), "-f", data("job.yaml"), "--config", writeFile(t, "apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !*update {
		golden(t, filepath.Join("explain", "job.golden"), got)
	}
}

func loadState(t *testing.T, path string) *state.State {
	t.Helper()
	s, err := state.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fakeCluster is a cluster with what is in a state, and the webhook.
func fakeCluster(t *testing.T, s *state.State) *fake.Clientset {
	t.Helper()
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: config.WebhookConfigurationName},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{*webhookManifest(t)},
	}
	objects := []runtime.Object{hook}
	for i := range s.Nodes {
		objects = append(objects, &s.Nodes[i])
	}
	for i := range s.Pods {
		objects = append(objects, &s.Pods[i])
	}
	for _, name := range s.EnabledNamespaces {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{config.LabelEnabled: "true"},
		}})
	}
	clients := fake.NewClientset(objects...)
	if discovery, ok := clients.Discovery().(*fakediscovery.FakeDiscovery); ok {
		discovery.FakedServerVersion = &apiversion.Info{GitVersion: s.ServerVersion}
	}
	return clients
}

// explainIn runs explain against a fake cluster.
func explainIn(t *testing.T, clients kubernetes.Interface, args ...string) (string, error) {
	t.Helper()
	o := &explainOptions{clients: func() (kubernetes.Interface, error) { return clients, nil }}
	cmd := o.command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// Without an installation, the output says so and goes on by the defaults.
func TestExplainUninstalled(t *testing.T) {
	s := loadState(t, data("cluster.yaml"))
	clients := fakeCluster(t, s)
	err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(t.Context(), config.WebhookConfigurationName, metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := explainIn(t, clients, "-f", data("job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "would not be called because gpu-binpacker is not installed"; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}
