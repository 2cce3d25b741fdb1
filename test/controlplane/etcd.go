package controlplane

import (
	"context"
	"net/http"
)

// etcd describes etcd. It speaks plain HTTP on loopback.
func (cp *ControlPlane) etcd() (*Component, error) {
	peerPort, err := cp.ports.reserve()
	if err != nil {
		return nil, err
	}
	client, peer := "http://"+loopback(cp.etcdPort), "http://"+loopback(peerPort)
	ready := func(ctx context.Context) error { return get(ctx, http.DefaultClient, client+"/readyz") }
	return cp.component(Etcd, cp.options.Binaries.Etcd, ready,
		"--name=default",
		"--data-dir="+cp.path("etcd"),
		"--listen-client-urls="+client,
		"--advertise-client-urls="+client,
		"--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer,
		"--initial-cluster=default="+peer,
		"--log-level=warn",
		// The data need not survive a power cut.
		"--unsafe-no-fsync",
		// Room for thousands of nodes and pods and their history.
		"--quota-backend-bytes=8589934592",
	), nil
}
