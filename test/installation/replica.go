package installation

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

const (
	// tokenLifetime is longer than any test.
	tokenLifetime = 24 * time.Hour
	fileMode      = 0o600
	dirMode       = 0o700
)

// Replica is one process of the webhook. Its Component stops, kills, pauses and
// restarts it and knows its log.
type Replica struct {
	*controlplane.Component

	webhookAddress string
	healthAddress  string
	metricsURL     string
	readyURL       string
	scraper        *http.Client
}

// WebhookAddress is where the replica answers the API server, behind the proxy.
func (r *Replica) WebhookAddress() string { return r.webhookAddress }

// HealthAddress is where the replica answers the kubelet's probes, /readyz and
// /healthz.
func (r *Replica) HealthAddress() string { return r.healthAddress }

// MetricsURL is where the replica serves its metrics.
func (r *Replica) MetricsURL() string { return r.metricsURL }

// newReplica describes replica n, which has a folder of its own for its
// credentials, its configuration and its log.
func (i *Installation) newReplica(ctx context.Context, n int, certificates string) (*Replica, error) {
	name := fmt.Sprintf("gpu-binpacker-%d", n)
	dir := filepath.Join(i.cp.Dir(), name)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("preparing %s: %w", name, err)
	}
	kubeconfig, err := i.credentials(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", name, err)
	}
	args, err := i.arguments(dir)
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", name, err)
	}
	health, metrics, err := i.twoPorts()
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", name, err)
	}
	args = append(args,
		"--kubeconfig="+kubeconfig,
		"--webhook-cert-dir="+certificates,
		fmt.Sprintf("--webhook-port=%d", i.proxy.backends[n].port),
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", health),
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", metrics),
	)
	replica := &Replica{
		webhookAddress: address(i.proxy.backends[n].port),
		healthAddress:  address(health),
		metricsURL:     fmt.Sprintf("https://127.0.0.1:%d/metrics", metrics),
		readyURL:       fmt.Sprintf("http://127.0.0.1:%d/readyz", health),
		scraper:        i.scraper,
	}
	replica.Component = controlplane.NewComponent(controlplane.ComponentOptions{
		Name:        name,
		Path:        i.options.Binary,
		Args:        append(args, i.options.Args...),
		Environment: i.environment(),
		Dir:         dir,
		Ready: func(ctx context.Context) error {
			if _, err := controlplane.Read(ctx, http.DefaultClient, replica.readyURL); err != nil {
				return err
			}
			// The endpoint for metrics comes up on its own.
			_, err := replica.Metrics(ctx)
			return err
		},
	})
	return replica, nil
}

// credentials writes a token of the shipped ServiceAccount and a kubeconfig file
// that uses it, and returns the path of the latter.
func (i *Installation) credentials(ctx context.Context, dir string) (string, error) {
	token, err := i.token(ctx, i.bundle.deployment.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return "", err
	}
	tokenFile, kubeconfig := filepath.Join(dir, "token"), filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(tokenFile, []byte(token), fileMode); err != nil {
		return "", err
	}
	if err := i.cp.WriteKubeconfig(kubeconfig, &clientcmdapi.AuthInfo{TokenFile: tokenFile}); err != nil {
		return "", err
	}
	return kubeconfig, adaptKubeconfig(kubeconfig, i.options.APIServer, i.bundle.namespace())
}

// adaptKubeconfig writes into a kubeconfig file the namespace of the pods, which a
// process in a pod reads beside its token, and the URL of the API server, unless that
// is empty.
func adaptKubeconfig(kubeconfig, url, namespace string) error {
	content, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	for name := range content.Contexts {
		content.Contexts[name].Namespace = namespace
	}
	for _, cluster := range content.Clusters {
		if url != "" {
			cluster.Server = url
		}
	}
	return clientcmd.WriteToFile(*content, kubeconfig)
}

// token asks for a token of a ServiceAccount in the webhook's namespace.
func (i *Installation) token(ctx context.Context, account string) (string, error) {
	seconds := int64(tokenLifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := i.cp.Clientset().CoreV1().ServiceAccounts(i.bundle.namespace()).
		CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s: %w", account, err)
	}
	return answer.Status.Token, nil
}

// arguments writes the files of the ConfigMap into dir and returns the
// container's arguments with dir in place of the folder where the Deployment
// mounts the ConfigMap.
func (i *Installation) arguments(dir string) ([]string, error) {
	for key, content := range i.bundle.configuration.Data {
		if err := os.WriteFile(filepath.Join(dir, key), []byte(content), fileMode); err != nil {
			return nil, err
		}
	}
	mountPath := i.bundle.configurationMount()
	var args []string
	for _, arg := range i.bundle.container().Args {
		args = append(args, strings.ReplaceAll(arg, mountPath, dir))
	}
	return args, nil
}

// configurationMount is where the Deployment mounts the ConfigMap.
func (b *bundle) configurationMount() string {
	for _, volume := range b.deployment.Spec.Template.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		for _, mount := range b.container().VolumeMounts {
			if mount.Name == volume.Name {
				return mount.MountPath
			}
		}
	}
	return ""
}

// environment is the container's.
func (i *Installation) environment() []string {
	var environment []string
	for _, variable := range i.bundle.container().Env {
		environment = append(environment, variable.Name+"="+variable.Value)
	}
	return environment
}

// twoPorts reserves two ports.
func (i *Installation) twoPorts() (first, second int, err error) {
	if first, err = i.cp.ReservePort(); err != nil {
		return 0, 0, err
	}
	second, err = i.cp.ReservePort()
	return first, second, err
}
