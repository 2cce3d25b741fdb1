package controlplane

import (
	"context"
	"strconv"
)

// apiServer describes kube-apiserver, configured like kubeadm does where that
// matters to a client: authorization modes, admission plugins, service account
// tokens.
func (cp *ControlPlane) apiServer() (*Component, error) {
	url := "https://" + loopback(cp.apiServerPort)
	cp.addresses[APIServer] = url
	ready := func(ctx context.Context) error { return cp.get(ctx, url+"/readyz") }
	return cp.component(APIServer, cp.options.Binaries.APIServer, ready,
		"--etcd-servers=http://"+loopback(cp.etcdPort),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(cp.apiServerPort),
		// The endpoint of the Service "kubernetes" may not be on loopback.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file="+cp.path(serverCertificate),
		"--tls-private-key-file="+cp.path(serverKey),
		"--client-ca-file="+cp.path(caCertificateFile),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+cp.path(serviceAccountKey),
		"--service-account-signing-key-file="+cp.path(serviceAccountKey),
		// A burst of a test is no reason to make anybody wait. Five times
		// the defaults.
		"--max-requests-inflight=2000",
		"--max-mutating-requests-inflight=1000",
		"--v="+cp.verbosity(APIServer),
	), nil
}

// verbosity returns the value of -v for a component.
func (cp *ControlPlane) verbosity(name string) string {
	return strconv.Itoa(cp.options.Verbosity[name])
}
