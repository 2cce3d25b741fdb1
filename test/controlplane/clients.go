package controlplane

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requestTimeout ends a request to the API server that hangs, for instance
// because a test has paused the API server.
const requestTimeout = 30 * time.Second

// Scheme returns the types that Client knows: Kubernetes' own, CRDs and those
// of cert-manager.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubernetesscheme.AddToScheme, apiextensionsv1.AddToScheme, certmanagerv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two types of one name, a mistake in this function
		}
	}
	return scheme
}

// RESTConfig returns a copy of the administrator's client configuration, without
// rate limit and without timeout, so that it can be used for watches.
func (cp *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(cp.config) }

// Kubeconfig returns the path of the administrator's kubeconfig file.
func (cp *ControlPlane) Kubeconfig() string { return cp.kubeconfig }

// Client returns an administrator's client that reads from the API server, not
// from a cache. A request of it ends after half a minute at the latest.
func (cp *ControlPlane) Client() client.Client { return cp.client }

// Clientset returns an administrator's clientset. A request of it, a watch too,
// ends after half a minute at the latest.
func (cp *ControlPlane) Clientset() kubernetes.Interface { return cp.clientset }

// newClients makes the administrator's clients. None connects yet.
func (cp *ControlPlane) newClients() (err error) {
	if cp.config, err = cp.loadAdmin(); err != nil {
		return err
	}
	limited := cp.RESTConfig()
	limited.Timeout = requestTimeout
	if cp.httpClient, err = rest.HTTPClientFor(limited); err != nil {
		return fmt.Errorf("building the HTTP client: %w", err)
	}
	if cp.clientset, err = kubernetes.NewForConfigAndClient(limited, cp.httpClient); err != nil {
		return fmt.Errorf("building the clientset: %w", err)
	}
	options := client.Options{Scheme: Scheme(), HTTPClient: cp.httpClient}
	if cp.client, err = client.New(limited, options); err != nil {
		return fmt.Errorf("building the client: %w", err)
	}
	return nil
}

// get asks a component for a path that answers 200 when all is well. All
// components trust the administrator's certificate.
func (cp *ControlPlane) get(ctx context.Context, url string) error {
	return get(ctx, cp.httpClient, url)
}

// get returns nil when the answer is 200 OK.
func get(ctx context.Context, httpClient *http.Client, url string) error {
	_, err := Read(ctx, httpClient, url)
	return err
}

// Read returns the body of an answer that is 200 OK.
func Read(ctx context.Context, httpClient *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("getting %s: %s: %.500s", url, response.Status, body)
	}
	return body, nil
}
