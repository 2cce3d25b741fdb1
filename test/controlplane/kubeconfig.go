package controlplane

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigFor writes a kubeconfig file for a user and returns its path.
func (cp *ControlPlane) kubeconfigFor(user string, groups ...string) (string, error) {
	pair, err := cp.ca.client(user, groups...)
	if err != nil {
		return "", err
	}
	path := filepath.Join(cp.dir, user+".kubeconfig")
	return path, cp.WriteKubeconfig(path, &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.certificate,
		ClientKeyData:         pair.key,
	})
}

// WriteKubeconfig writes a kubeconfig file that reaches the API server with the
// given credentials.
func (cp *ControlPlane) WriteKubeconfig(path string, user *clientcmdapi.AuthInfo) error {
	const name = "test-bed"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   "https://" + loopback(cp.apiServerPort),
		CertificateAuthorityData: cp.ca.pem(),
	}
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// loadAdmin reads the administrator's kubeconfig file. Client-side rate limits
// are off: what a test sends must not be slowed down by the test.
func (cp *ControlPlane) loadAdmin() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", cp.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", cp.kubeconfig, err)
	}
	config.QPS = -1
	return config, nil
}
