package controlplane

import (
	"context"
	"strconv"
)

// controllerManager describes kube-controller-manager with the controllers that
// kubeadm enables.
func (cp *ControlPlane) controllerManager() (*Component, error) {
	port, err := cp.ports.reserve()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := cp.kubeconfigFor("system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	url := "https://" + loopback(port)
	cp.addresses[ControllerManager] = url
	ready := func(ctx context.Context) error { return cp.get(ctx, url+"/healthz") }
	return cp.component(ControllerManager, cp.options.Binaries.ControllerManager, ready,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(port),
		"--tls-cert-file="+cp.path(serverCertificate),
		"--tls-private-key-file="+cp.path(serverKey),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+cp.path(serviceAccountKey),
		"--root-ca-file="+cp.path(caCertificateFile),
		"--cluster-signing-cert-file="+cp.path(caCertificateFile),
		"--cluster-signing-key-file="+cp.path(caKeyFile),
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--kube-api-qps="+strconv.Itoa(clientQPS),
		"--kube-api-burst="+strconv.Itoa(clientBurst),
		// Fake nodes send no heartbeats: the leases of thousands of them
		// would keep the machine busy. A test that wants a node to fail
		// sets its Ready condition.
		"--node-monitor-grace-period=24h",
		"--v="+cp.verbosity(ControllerManager),
	), nil
}
